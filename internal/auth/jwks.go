package auth

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ParseJWKS reads the key set that a control plane publishes (control plane
// 15.6). A key that is not an Ed25519 signing key is passed over, so that one
// of a kind not known yet spoils nothing; two keys may share an id. There must
// be one usable key at least, and [MaxKeys] at most.
func ParseJWKS(data []byte) ([]Key, error) {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil || set.Keys == nil {
		return nil, errors.New("not a JWK set")
	}
	if n := len(*set.Keys); n > MaxKeys {
		return nil, fmt.Errorf("%d keys, at most %d are allowed", n, MaxKeys)
	}
	keys := make([]Key, 0, len(*set.Keys))
	for _, entry := range *set.Keys {
		var j jwk
		if json.Unmarshal(entry, &j) != nil {
			continue
		}
		key, err := j.key()
		if err != nil {
			continue
		}
		if key.ID == "" {
			key.ID = Thumbprint(key.Public)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("the set holds no Ed25519 signing key")
	}
	return keys, nil
}
