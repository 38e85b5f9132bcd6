package credential

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
)

// jwt is a token of that form; nobody here checks its signature.
func jwt(id string, issued, expires time.Time) string {
	body, err := json.Marshal(map[string]any{"tid": "ops", "iat": issued.Unix(), "exp": expires.Unix(), "jti": id})
	if err != nil {
		panic(err)
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(body) + ".c2ln"
}

func fresh(id string) string { return jwt(id, time.Now(), time.Now().Add(15*time.Minute)) }

// An issuer gives tokens for refresh tokens, each of which it takes once.
type issuer struct {
	mu       sync.Mutex
	next     int
	valid    string
	err      error
	slow     time.Duration
	calls    int
	replayed int
}

func (i *issuer) refresh(_ context.Context, tenant, refreshToken string) (apiclient.TokenResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls++
	if tenant != "ops" {
		return apiclient.TokenResponse{}, errors.New("wrong tenant")
	}
	if i.slow > 0 {
		time.Sleep(i.slow)
	}
	if i.err != nil {
		return apiclient.TokenResponse{}, i.err
	}
	if refreshToken != i.valid {
		i.replayed++
		return apiclient.TokenResponse{}, &apiclient.Error{Status: 403, Code: "forbidden", Message: "refresh token is not usable"}
	}
	i.next++
	i.valid = fmt.Sprintf("id.secret-%d", i.next)
	return apiclient.TokenResponse{FelixToken: fresh(fmt.Sprint(i.next)), RefreshToken: i.valid}, nil
}

func (i *issuer) called() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls
}

// A rig is a source with a refresh token in a file.
type rig struct {
	t      *testing.T
	issuer *issuer
	file   string
	source *Source
	log    bytes.Buffer
}

func newRig(t *testing.T, token string) *rig {
	t.Helper()
	r := &rig{t: t, issuer: &issuer{valid: "id.secret-0"}, file: filepath.Join(t.TempDir(), "refresh")}
	must(t, os.WriteFile(r.file, []byte("id.secret-0\n"), 0o600))
	s, err := New(Options{Token: token, RefreshFile: r.file, Refresh: r.issuer.refresh, Logger: slog.New(slog.NewTextHandler(&r.log, nil))})
	must(t, err)
	r.source = s
	return r
}

func (r *rig) kept() string {
	r.t.Helper()
	data, err := os.ReadFile(r.file)
	must(r.t, err)
	return strings.TrimSpace(string(data))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTokensAreRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fresh("first"))
		last := ""
		for range 24 * 60 { // a day, a look a minute
			token, err := r.source.Token(t.Context())
			must(t, err)
			c, err := parse(token)
			must(t, err)
			if !c.expires.After(time.Now()) {
				t.Fatal("an expired token is given")
			}
			last = token
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if last == "" || r.issuer.replayed > 0 || r.kept() != r.issuer.valid {
			t.Errorf("%d replays, %q in the file, %q is valid", r.issuer.replayed, r.kept(), r.issuer.valid)
		}
		if n := r.issuer.called(); n < 24*60/15 || n > 24*60/9 {
			t.Errorf("%d refreshes in a day", n)
		}
		info, err := os.Stat(r.file)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the file may be read by others: %s", info.Mode())
		}
		if left, err := os.ReadDir(filepath.Dir(r.file)); err != nil || len(left) != 1 {
			t.Errorf("files %v, %v", left, err)
		}
	})
}

func TestAnExpiredTokenWaitsForOneRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fresh("first"))
		r.issuer.slow = time.Second
		time.Sleep(time.Hour)
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if _, err := r.source.Token(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if n := r.issuer.called(); n != 1 {
			t.Errorf("%d refreshes for a hundred callers", n)
		}
	})
}

func TestARefusedRefreshIsNotRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fresh("first"))
		r.issuer.err = &apiclient.Error{Status: 403, Code: "forbidden"}
		time.Sleep(time.Hour)
		for range 600 {
			if _, err := r.source.Token(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
				t.Fatalf("token: %v", err)
			}
			time.Sleep(time.Second)
		}
		if n := r.issuer.called(); n > 20 {
			t.Errorf("%d refreshes in ten minutes", n)
		}
		if !strings.Contains(r.log.String(), "write its refresh token to the file") || strings.Contains(r.log.String(), "secret") {
			t.Errorf("log:\n%s", r.log.String())
		}
		// The operator writes a new one: it is taken at once.
		r.issuer.err = nil
		r.issuer.valid = "id.secret-new"
		must(t, os.WriteFile(r.file, []byte("id.secret-new\n"), 0o600))
		if _, err := r.source.Token(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOutageIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fresh("first"))
		r.issuer.err = &apiclient.UnreachableError{Err: errors.New("refused")}
		time.Sleep(14 * time.Minute)
		if _, err := r.source.Token(t.Context()); err != nil {
			t.Errorf("while the token is valid: %v", err)
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		if _, err := r.source.Token(t.Context()); err == nil {
			t.Error("an expired token is given")
		}
		r.issuer.err = nil
		time.Sleep(2 * time.Minute)
		if _, err := r.source.Token(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestARefreshTokenThatCannotBeWrittenIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fresh("first"))
		must(t, os.Remove(r.file))
		must(t, os.Mkdir(r.file, 0o700)) // nothing can be renamed over a directory
		r.source.refresh.text = "id.secret-0"
		r.source.unsaved = "id.secret-0"
		for range 3 {
			time.Sleep(12 * time.Minute)
			if _, err := r.source.Token(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if r.issuer.replayed > 0 || r.source.Stats().Refreshes != 3 {
			t.Errorf("%d replays, %+v", r.issuer.replayed, r.source.Stats())
		}
		if !strings.Contains(r.log.String(), "could not be written") || strings.Contains(r.log.String(), "secret") {
			t.Errorf("log:\n%s", r.log.String())
		}
	})
}

func TestATokenFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	first, second := fresh("one"), fresh("second-token")
	must(t, os.WriteFile(file, []byte(first+"\n"), 0o600))
	s, err := New(Options{TokenFile: file, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	expect := func(want string) {
		t.Helper()
		if got, err := s.Token(t.Context()); err != nil || got != want {
			t.Errorf("another token than written, %v", err)
		}
	}
	expect(first)
	must(t, os.WriteFile(file, []byte(second), 0o600))
	expect(second)
	must(t, os.Remove(file))
	expect(second) // it may be written anew in a moment
	must(t, os.WriteFile(file, []byte("not a token"), 0o600))
	expect(second)
	must(t, os.WriteFile(file, []byte(jwt("old", time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))), 0o600))
	if _, err := s.Token(t.Context()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("an expired token: %v", err)
	}
}

func TestCredentialsThatCannotWork(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := write("good", fresh("x"))
	for name, o := range map[string]Options{
		"none":              {},
		"both":              {Token: fresh("x"), TokenFile: good},
		"ends":              {Token: fresh("secret")},
		"no token":          {Token: "secret"},
		"no tenant":         {Token: "e30.e30.c2ln"},
		"no file":           {TokenFile: filepath.Join(dir, "absent")},
		"empty file":        {TokenFile: write("empty", "\n")},
		"two tokens":        {TokenFile: write("two", "a.b.c\nd.e.f\n")},
		"large file":        {TokenFile: write("large", strings.Repeat("x", maxFile+1))},
		"no refresh file":   {TokenFile: good, RefreshFile: filepath.Join(dir, "absent")},
		"file is directory": {TokenFile: dir},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	forever := jwt("x", time.Now(), time.Unix(253402300799, 0))
	if _, err := New(Options{Token: forever}); err != nil {
		t.Errorf("a token that does not end: %v", err)
	}
}
