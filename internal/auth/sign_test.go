package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestMintedTokenVerifies(t *testing.T) {
	signer := NewSigner("", newKey(t))
	v := newVerifier(t, signer.Key())
	token, err := signer.Mint(Claims{
		Tenant: "acme", Subject: PrincipalID("https://issuer", "me"), Permissions: []string{"stream.subscribe:stream:acme/*/*"},
		IssuedAt: epoch, Expires: NoExpiry(), ID: "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(context.Background(), "acme", token)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Grants.CanSubscribe("n", "s") || !p.Expires.Equal(NoExpiry()) {
		t.Errorf("principal is %+v", p)
	}
	header, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil {
		t.Fatal(err)
	}
	var h map[string]string
	if err := json.Unmarshal(header, &h); err != nil {
		t.Fatal(err)
	}
	if h["alg"] != "EdDSA" || h["typ"] != "JWT" || h["kid"] != signer.Key().ID || len(h) != 3 {
		t.Errorf("header is %s", header)
	}
}

func TestMintRefusesWhatABrokerWould(t *testing.T) {
	signer := NewSigner("k", newKey(t))
	good := Claims{Tenant: "acme", Subject: "x", IssuedAt: epoch, Expires: epoch}
	if _, err := signer.Mint(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Claims){
		"tenant":     func(c *Claims) { c.Tenant = ".." },
		"subject":    func(c *Claims) { c.Subject = "" },
		"expiry":     func(c *Claims) { c.Expires = epoch.Add(-time.Second) },
		"permission": func(c *Claims) { c.Permissions = []string{"stream.fly:*"} },
	} {
		c := good
		change(&c)
		if token, err := signer.Mint(c); err == nil || token != "" {
			t.Errorf("bad %s is minted", name)
		}
	}
}

func TestGenerateKeyTakesItsRandomness(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, 32)
	a, err := GenerateKey(bytes.NewReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	b, err := GenerateKey(bytes.NewReader(seed))
	if err != nil || !a.Equal(b) {
		t.Errorf("one seed gives two keys (%v)", err)
	}
	cause := errors.New("dry")
	if _, err := GenerateKey(iotest.ErrReader(cause)); !errors.Is(err, cause) {
		t.Errorf("%v, want %v", err, cause)
	}
}

func TestPrincipalID(t *testing.T) {
	// sha256("https://idp.example|alice")
	const want = "8844f38bbb223c85782d86fb1620b14b563ee3d8fc15e4fb78c3e8f2e1f41806"
	if got := PrincipalID("https://idp.example", "alice"); got != want {
		t.Errorf("principal id is %s, want %s", got, want)
	}
}

func TestPublicKeyFiles(t *testing.T) {
	one, two := NewSigner("one", newKey(t)).Key(), NewSigner("two", newKey(t)).Key()
	jwk := func(k Key) []byte {
		b, err := MarshalJWK(k)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pemOf := func(k Key) []byte {
		b, err := MarshalPEM(k)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	set, err := MarshalJWKS([]Key{one, two})
	if err != nil {
		t.Fatal(err)
	}
	unnamed := Key{Public: one.Public}
	for name, tt := range map[string]struct {
		file []byte
		want []Key
	}{
		"JWK":            {jwk(one), []Key{one}},
		"JWK set":        {set, []Key{one, two}},
		"JWK without id": {jwk(unnamed), []Key{{ID: Thumbprint(one.Public), Public: one.Public}}},
		"JWK, bare":      {[]byte(`{"kty":"OKP","crv":"Ed25519","x":"` + base64.RawURLEncoding.EncodeToString(two.Public) + `","kid":"two"}`), []Key{two}},
		"PEM":            {pemOf(two), []Key{{ID: Thumbprint(two.Public), Public: two.Public}}},
		"two PEM blocks": {append(append([]byte("# ours\n"), pemOf(one)...), pemOf(two)...), []Key{
			{ID: Thumbprint(one.Public), Public: one.Public}, {ID: Thumbprint(two.Public), Public: two.Public}}},
	} {
		got, err := ParsePublicKeys(tt.file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %d keys, want %d", name, len(got), len(tt.want))
			continue
		}
		for i := range got {
			if got[i].ID != tt.want[i].ID || !got[i].Public.Equal(tt.want[i].Public) {
				t.Errorf("%s: key %d is %s, want %s", name, i, got[i].ID, tt.want[i].ID)
			}
		}
	}
}

func TestPublicKeyFilesRefused(t *testing.T) {
	private := newKey(t)
	privatePEM, err := MarshalPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(curve.Public())
	if err != nil {
		t.Fatal(err)
	}
	key := NewSigner("k", private).Key()
	x := base64.RawURLEncoding.EncodeToString(key.Public)
	entry := `{"kty":"OKP","crv":"Ed25519","x":"` + x + `"}`
	publicPEM, err := MarshalPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ file, says string }{
		"empty":            {" \n", "empty"},
		"HTML":             {"<html>503</html>", "neither PEM nor a JWK"},
		"empty set":        {`{"keys":[]}`, "empty"},
		"no JSON":          {`{"keys":`, "not a JWK"},
		"RSA":              {`{"kty":"RSA","n":"x","e":"AQAB"}`, "only OKP with Ed25519"},
		"X25519":           {`{"kty":"OKP","crv":"X25519","x":"` + x + `"}`, "only OKP with Ed25519"},
		"other algorithm":  {`{"kty":"OKP","crv":"Ed25519","alg":"HS256","x":"` + x + `"}`, "only EdDSA"},
		"encryption":       {`{"kty":"OKP","crv":"Ed25519","use":"enc","x":"` + x + `"}`, "only sig"},
		"padded":           {`{"kty":"OKP","crv":"Ed25519","x":"` + x + `="}`, "base64url"},
		"short":            {`{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`, "32 bytes"},
		"private JWK":      {`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","d":"SECRET"}`, "private key"},
		"private PEM":      {string(privatePEM), "private key"},
		"bad one in set":   {`{"keys":[` + entry + `,{"kty":"EC"}]}`, "key 2"},
		"too many":         {`{"keys":[` + strings.Repeat(entry+",", MaxKeys) + entry + `]}`, "at most"},
		"certificate":      {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "CERTIFICATE"},
		"P-256 PEM":        {string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "only Ed25519"},
		"broken PEM":       {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "decode public key"},
		"text after a PEM": {string(publicPEM) + "and so on", "after the last"},
	} {
		_, err := ParsePublicKeys([]byte(tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, tt.says)
		}
		if err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v shows the private key", name, err)
		}
	}
	if _, err := MarshalJWK(Key{ID: "x"}); err == nil {
		t.Error("a JWK of no key is written")
	}
	if _, err := MarshalJWKS([]Key{{ID: "x"}}); err == nil {
		t.Error("a JWK set of no key is written")
	}
}

func TestPrivateKeyRoundTrip(t *testing.T) {
	private := newKey(t)
	file, err := MarshalPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParsePrivateKey(file)
	if err != nil || !again.Equal(private) {
		t.Errorf("%v, key differs: %v", err, !again.Equal(private))
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"empty": nil, "no PEM": []byte("x"), "broken": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
		"P-256": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	} {
		if _, err := ParsePrivateKey(file); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestThumbprint uses the example of RFC 8037, appendix A.3.
func TestThumbprint(t *testing.T) {
	public, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	if got := Thumbprint(public); got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("thumbprint is %s", got)
	}
}
