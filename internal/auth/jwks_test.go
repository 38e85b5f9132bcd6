package auth

import (
	"crypto/ed25519"
	"strings"
	"testing"
)

func TestKeySetsAsPublished(t *testing.T) {
	a, b := NewSigner("k", newKey(t)).Key(), NewSigner("k", newKey(t)).Key()
	set, err := MarshalJWKS([]Key{a, b})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseJWKS(set)
	if err != nil || len(keys) != 2 || keys[0].ID != "k" || !keys[1].Public.Equal(b.Public) {
		t.Errorf("two keys of one id: %v, %v", keys, err)
	}
	noAlg := strings.ReplaceAll(string(set), `"alg":"EdDSA",`, "")
	if keys, err := ParseJWKS([]byte(noAlg)); err != nil || len(keys) != 2 {
		t.Errorf("without alg: %v, %v", keys, err)
	}
	mixed := strings.Replace(string(set), `{"keys":[`, `{"keys":[{"kty":"RSA","n":"x"},7,null,`, 1)
	if keys, err := ParseJWKS([]byte(mixed)); err != nil || len(keys) != 2 {
		t.Errorf("among others: %v, %v", keys, err)
	}
	many := make([]Key, MaxKeys+1)
	for i := range many {
		many[i] = a
	}
	set, err = MarshalJWKS(many)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseJWKS(set); err == nil {
		t.Error("more keys than a tenant may have")
	}
}

func FuzzParseJWKS(f *testing.F) {
	set, err := MarshalJWKS([]Key{NewSigner("k", newKey(f)).Key()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(set)
	f.Add([]byte(`{"keys":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := ParseJWKS(data)
		if err != nil {
			return
		}
		if len(keys) == 0 || len(keys) > MaxKeys {
			t.Fatalf("%d keys", len(keys))
		}
		for _, k := range keys {
			if len(k.Public) != ed25519.PublicKeySize || k.ID == "" {
				t.Fatalf("key %+v", k)
			}
		}
	})
}
