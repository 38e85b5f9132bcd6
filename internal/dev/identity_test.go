package dev

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestIdentityStaysAcrossStarts(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_700_000_000, 0)
	first, err := loadIdentity(dir, rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	second, err := loadIdentity(dir, rand.Reader, now.AddDate(30, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if first.token != second.token {
		t.Error("the token changed from one start to the next")
	}
	if first.reset != second.reset {
		t.Error("the reset secret changed from one start to the next")
	}
	if !vouches(second.key, first.token, now.AddDate(100, 0, 0)) {
		t.Error("the token is not good a hundred years later")
	}
	for _, name := range []string{keyFile, tokenFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", name, info.Mode().Perm())
		}
	}
}

func TestForeignTokenIsReplaced(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	other, _, err := newIdentity(rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "garbage": "x.y.z", "another key's": other.token} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := loadIdentity(dir, rand.Reader, now); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, tokenFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			id, err := loadIdentity(dir, rand.Reader, now)
			if err != nil {
				t.Fatal(err)
			}
			if !vouches(id.key, id.token, now) || id.token == text {
				t.Errorf("token %q is in use", id.token)
			}
		})
	}
}

func TestUnreadableKeyIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadIdentity(dir, rand.Reader, time.Now()); err == nil {
		t.Error("a new key was made in place of one that could not be read")
	}
}
