package auth

import (
	"crypto/ed25519"
	"log/slog"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	token "github.com/felixlog/felix/internal/auth"
)

// A keyring is the parsed keys of one tenant.
type keyring struct {
	signer *token.Signer // of the current key; nil if there is none
	public []token.Key   // all, current first
	loaded time.Time
	round  uint64 // the last of keyCache.rounds that had ended before it was read
}

// answers says whether there is a key to check a token with that names kid, or
// none.
func (r *keyring) answers(kid string) bool {
	return len(r.public) > 0 && (kid == "" || r.has(kid))
}

func (r *keyring) has(kid string) bool {
	for _, key := range r.public {
		if key.ID == kid {
			return true
		}
	}
	return false
}

// parse leaves out a key whose public part is not that of its seed: tokens
// signed with it would verify nowhere.
func (c *keyCache) parse(tenant string, keys []model.SigningKey, now time.Time) *keyring {
	ring := &keyring{loaded: now, public: make([]token.Key, 0, len(keys))}
	for _, key := range keys {
		if len(key.Seed) != ed25519.SeedSize {
			c.damaged(tenant, key)
			continue
		}
		private := ed25519.NewKeyFromSeed(key.Seed)
		signer := token.NewSigner(key.KID, private)
		if !signer.Key().Public.Equal(ed25519.PublicKey(key.Public)) {
			c.damaged(tenant, key)
			continue
		}
		if key.Status == model.KeyCurrent {
			ring.signer = signer
		}
		ring.public = append(ring.public, signer.Key())
	}
	return ring
}

func (c *keyCache) damaged(tenant string, key model.SigningKey) {
	c.logger.Error("signing key is damaged: its public part does not belong to its seed; stage and activate another, then retire it",
		slog.String("tenant", clip(tenant)), slog.String("kid", clip(key.KID)))
}
