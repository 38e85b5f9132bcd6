package dev

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/ownfile"
)

// Whom the one token of a development broker speaks for, and where.
const (
	Tenant    = "dev"
	Namespace = "default"
	subject   = "developer"
)

// permissions lets a token do everything in the development tenant.
func permissions() []string {
	everything := Tenant + "/*"
	return []string{
		"stream.publish:stream:" + everything,
		"stream.subscribe:stream:" + everything,
		"stream.manage:stream:" + everything,
		"cache.read:cache:" + everything,
		"cache.write:cache:" + everything,
		"cache.manage:cache:" + everything,
		"group.consume:group:" + everything,
		"group.manage:group:" + everything,
		"node.view:cluster:*",
	}
}

// The files of an identity in the state directory.
const (
	keyFile          = "signing-key.pem"
	tokenFile        = "token"
	controlTokenFile = "controlplane-token"
	resetFile        = "reset.key"
)

// An identity is the key that signs tokens, the two tokens signed by it (for the
// broker and for the control plane), and the secret by which clients see at once
// that the server was restarted.
type identity struct {
	key     auth.Key
	private ed25519.PrivateKey
	token   string
	control string
	reset   [32]byte
}

// newIdentity makes a key and tokens that do not expire.
func newIdentity(random io.Reader, now time.Time) (identity, ed25519.PrivateKey, error) {
	private, err := auth.GenerateKey(random)
	if err != nil {
		return identity{}, nil, err
	}
	id, err := mint(private, now)
	if err == nil {
		_, err = io.ReadFull(random, id.reset[:])
	}
	return id, private, err
}

// mint signs the tokens of a development broker with private.
func mint(private ed25519.PrivateKey, now time.Time) (identity, error) {
	signer := auth.NewSigner("", private)
	token, err := signer.Mint(auth.Claims{
		Tenant: Tenant, Subject: subject, Permissions: permissions(),
		IssuedAt: now, Expires: auth.NoExpiry(),
	})
	if err != nil {
		return identity{}, err
	}
	claims := controlClaims()
	claims.IssuedAt = now
	control, err := signer.Mint(claims)
	if err != nil {
		return identity{}, err
	}
	return identity{key: signer.Key(), private: private, token: token, control: control}, nil
}

// loadIdentity reads the identity kept in dir, or makes one and keeps it
// there, so that a token copied once works after every restart. A token that
// its key does not vouch for is replaced; a key that cannot be read is an
// error, since making another would void every copy of the token.
func loadIdentity(dir string, random io.Reader, now time.Time) (identity, error) {
	var id identity
	var private ed25519.PrivateKey
	data, err := os.ReadFile(filepath.Join(dir, keyFile))
	switch {
	case err == nil:
		if private, err = auth.ParsePrivateKey(data); err != nil {
			return id, fmt.Errorf("%s: %w; remove it to get a new one", filepath.Join(dir, keyFile), err)
		}
		if id, err = mint(private, now); err != nil {
			return id, err
		}
	case errors.Is(err, fs.ErrNotExist):
		if id, private, err = newIdentity(random, now); err != nil {
			return id, err
		}
		text, err := auth.MarshalPrivateKey(private)
		if err != nil {
			return id, err
		}
		if err := ownfile.Replace(filepath.Join(dir, keyFile), text); err != nil {
			return id, err
		}
	default:
		return id, err
	}
	if err := loadReset(dir, random, &id.reset); err != nil {
		return id, err
	}
	if err := ownfile.Replace(filepath.Join(dir, controlTokenFile), []byte(id.control+"\n")); err != nil {
		return id, err
	}
	kept, err := os.ReadFile(filepath.Join(dir, tokenFile))
	if err == nil && vouches(id.key, strings.TrimSpace(string(kept)), now) {
		id.token = strings.TrimSpace(string(kept))
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	return id, ownfile.Replace(filepath.Join(dir, tokenFile), []byte(id.token+"\n"))
}

// loadReset reads the reset secret kept in dir into reset, or makes one.
func loadReset(dir string, random io.Reader, reset *[32]byte) error {
	name := filepath.Join(dir, resetFile)
	kept, err := os.ReadFile(name)
	switch {
	case err == nil && len(kept) == len(reset):
		copy(reset[:], kept)
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := io.ReadFull(random, reset[:]); err != nil {
		return err
	}
	return ownfile.Replace(name, reset[:])
}

// vouches says whether token is good for the development tenant under key,
// with all that such a token allows today.
func vouches(key auth.Key, token string, now time.Time) bool {
	source := auth.NewStaticKeys()
	if err := source.Set(Tenant, []auth.Key{key}); err != nil {
		return false
	}
	principal, err := auth.NewVerifier(source, func() time.Time { return now }).Verify(context.Background(), Tenant, token)
	return err == nil && principal.Expires.Equal(auth.NoExpiry()) &&
		principal.Grants.CanPublish(Namespace, "s") && principal.Grants.CanSubscribe(Namespace, "s") &&
		principal.Grants.CanWriteCache(Namespace, "c", "k") && principal.Grants.CanConsumeGroup(Namespace, "s", "g")
}
