package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// PEM block types.
const (
	publicBlock  = "PUBLIC KEY"
	privateBlock = "PRIVATE KEY"
)

// jwk is a public key as the control plane publishes it (wire 17.1).
type jwk struct {
	KeyType   string `json:"kty"`
	KeyID     string `json:"kid,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	Use       string `json:"use,omitempty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Private   string `json:"d,omitempty"`
}

// MarshalJWK writes key as a JWK.
func MarshalJWK(key Key) ([]byte, error) {
	if len(key.Public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("key %q is not an Ed25519 public key", key.ID)
	}
	return json.Marshal(jwk{
		KeyType: "OKP", KeyID: key.ID, Algorithm: "EdDSA", Use: "sig", Curve: "Ed25519",
		X: base64.RawURLEncoding.EncodeToString(key.Public),
	})
}

// MarshalJWKS writes keys as a JWK set.
func MarshalJWKS(keys []Key) ([]byte, error) {
	set := struct {
		Keys []json.RawMessage `json:"keys"`
	}{Keys: make([]json.RawMessage, 0, len(keys))}
	for _, key := range keys {
		one, err := MarshalJWK(key)
		if err != nil {
			return nil, err
		}
		set.Keys = append(set.Keys, one)
	}
	return json.Marshal(set)
}

// MarshalPEM writes the public key of key; the key id is lost.
func MarshalPEM(key Key) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der}), nil
}

// ParsePublicKeys reads the public keys of a file: PEM blocks, a JWK or a JWK
// set. Every key must be an Ed25519 signing key, and there must be one at
// least and [MaxKeys] at most. A key without an id gets its [Thumbprint].
func ParsePublicKeys(data []byte) ([]Key, error) {
	var keys []Key
	var err error
	switch text := bytes.TrimSpace(data); {
	case len(text) == 0:
		err = errors.New("no key: empty")
	case text[0] == '{':
		keys, err = parseJSONKeys(text)
	default:
		keys, err = parsePEMKeys(text)
	}
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("no key: the set is empty")
	}
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys, at most %d are allowed", len(keys), MaxKeys)
	}
	for i := range keys {
		if keys[i].ID == "" {
			keys[i].ID = Thumbprint(keys[i].Public)
		}
	}
	return keys, nil
}

func parseJSONKeys(data []byte) ([]Key, error) {
	var file struct {
		jwk
		Keys *[]jwk `json:"keys"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("not a JWK: %w", err)
	}
	entries := []jwk{file.jwk}
	if file.Keys != nil {
		entries = *file.Keys
	}
	keys := make([]Key, 0, min(len(entries), MaxKeys))
	for i, entry := range entries {
		key, err := entry.key()
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (j jwk) key() (Key, error) {
	switch {
	case j.Private != "":
		return Key{}, errors.New("this is a private key; give the public one")
	case j.KeyType != "OKP" || j.Curve != "Ed25519":
		return Key{}, fmt.Errorf("key type %q with curve %q: only OKP with Ed25519 is accepted", j.KeyType, j.Curve)
	case j.Algorithm != "" && j.Algorithm != "EdDSA":
		return Key{}, fmt.Errorf("algorithm %q: only EdDSA is accepted", j.Algorithm)
	case j.Use != "" && j.Use != "sig":
		return Key{}, fmt.Errorf("use %q: only sig is accepted", j.Use)
	}
	public, err := base64.RawURLEncoding.Strict().DecodeString(j.X)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("x is not %d bytes in base64url without padding", ed25519.PublicKeySize)
	}
	return Key{ID: j.KeyID, Public: public}, nil
}

func parsePEMKeys(data []byte) ([]Key, error) {
	var keys []Key
	for len(data) > 0 {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = bytes.TrimSpace(rest)
		if block.Type == privateBlock {
			return nil, errors.New("this is a private key; give the public one")
		}
		if block.Type != publicBlock {
			return nil, fmt.Errorf("PEM block %q: only %q is accepted", block.Type, publicBlock)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("decode public key: %w", err)
		}
		public, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("public key is %T: only Ed25519 is accepted", parsed)
		}
		keys = append(keys, Key{Public: public})
	}
	if len(keys) == 0 {
		return nil, errors.New("no key: neither PEM nor a JWK")
	}
	if len(data) > 0 {
		return nil, errors.New("text after the last PEM block")
	}
	return keys, nil
}

// Thumbprint is the RFC 7638 thumbprint of a public key: the id of a key that
// has no other.
func Thumbprint(public ed25519.PublicKey) string {
	canonical := `{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`
	sum := sha256.Sum256([]byte(canonical))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// MarshalPrivateKey writes private as PKCS #8 in PEM.
func MarshalPrivateKey(private ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), nil
}

// ParsePrivateKey reads what [MarshalPrivateKey] wrote. Its error never holds
// key material.
func ParsePrivateKey(data []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != privateBlock {
		return nil, fmt.Errorf("no PEM block %q", privateBlock)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("not a PKCS #8 private key")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("private key is %T: only Ed25519 is accepted", parsed)
	}
	return private, nil
}
