package apiclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// secret is the token of these tests, which no error may hold.
const secret = "SECRET-TOKEN-SECRET"

func token(context.Context) (string, error) { return secret, nil }

// serve answers every request with f and counts them.
func serve(t *testing.T, f http.HandlerFunc) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		f(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func newClient(t *testing.T, o apiclient.Options) *apiclient.Client {
	t.Helper()
	if o.Token == nil {
		o.Token = token
	}
	if o.Retry.Base == 0 {
		o.Retry.Base, o.Retry.Max = time.Millisecond, 2*time.Millisecond
	}
	c, err := apiclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestSnapshotsThatAreNone: nothing but a whole snapshot is one (BR-45).
func TestSnapshotsThatAreNone(t *testing.T) {
	huge := `{"items":[],"next_seq":1,"x":"` + strings.Repeat("x", 5000) + `"}`
	for name, f := range map[string]http.HandlerFunc{
		"array":          answer(200, `[]`),
		"null":           answer(200, `null`),
		"object":         answer(200, `{}`),
		"no items":       answer(200, `{"next_seq":4}`),
		"items are null": answer(200, `{"items":null,"next_seq":4}`),
		"no next_seq":    answer(200, `{"items":[]}`),
		"number":         answer(200, `7`),
		"empty":          answer(200, ``),
		"HTML":           answer(200, "<html><body>"+secret+"</body></html>"),
		"cut off":        answer(200, `{"items":[{"tenant_id":"t1","namespace":"n","stream":"s"`),
		"two values":     answer(200, `{"items":[],"next_seq":4}{"items":[],"next_seq":4}`),
		"too long":       answer(200, huge),
		"negative":       answer(200, `{"items":[],"next_seq":-1}`),
		"wrong kind":     answer(200, `{"items":{"a":1},"next_seq":4}`),
		"no content":     answer(204, ``),
		"redirect":       func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"not found":      answer(404, `{"code":"not_found","message":"no","request_id":null}`),
		"error in HTML":  answer(502, "<html>"+secret+"</html>"),
		"body breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"items":[],"next_seq":4}`)
		},
		"connection drops": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		url, _ := serve(t, f)
		c := newClient(t, apiclient.Options{URL: url, MaxAnswer: 4096})
		s, err := c.StreamsSnapshot(t.Context())
		if err == nil {
			t.Errorf("%s: taken for a snapshot: %+v", name, s)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v shows the token or the answer", name, err)
		}
		if _, err := c.StreamChanges(t.Context(), 3, 0); err == nil {
			t.Errorf("%s: taken for a page", name)
		}
	}
}

func TestErrorsSayWhatTheServerSaid(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code":"conflict","message":"stream \u001b[31m exists","request_id":"abc"}`)
	})
	c := newClient(t, apiclient.Options{URL: url})
	_, err := c.CreateStream(t.Context(), model.NamespaceKey{TenantID: "t", Namespace: "n"}, apiclient.StreamSpec{Stream: "s"})
	var refused *apiclient.Error
	if !errors.As(err, &refused) {
		t.Fatalf("%v is no *Error", err)
	}
	if refused.Status != 409 || refused.Code != "conflict" || refused.RequestID != "abc" || refused.RetryAfter != 7*time.Second || !refused.Final() {
		t.Errorf("error is %+v", refused)
	}
	if strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("%q holds a control character", err)
	}
	if apiclient.StatusOf(fmt.Errorf("x: %w", err)) != 409 || apiclient.CodeOf(err) != "conflict" || apiclient.StatusOf(io.EOF) != 0 {
		t.Error("status or code is not found in the error")
	}
}

// TestWhatIsRepeated counts requests: reads are repeated, and of writes only
// those that were certainly not carried out.
func TestWhatIsRepeated(t *testing.T) {
	read := func(c *apiclient.Client) error { _, err := c.Stream(t.Context(), model.StreamKey{}); return err }
	create := func(c *apiclient.Client) error { _, err := c.CreateTenant(t.Context(), model.Tenant{}); return err }
	remove := func(c *apiclient.Client) error { return c.DeleteTenant(t.Context(), "t") }
	refresh := func(c *apiclient.Client) error { _, err := c.Refresh(t.Context(), "t", "r", ""); return err }
	for _, tt := range []struct {
		name   string
		status int
		code   string
		call   func(*apiclient.Client) error
		want   int64
	}{
		{"read, 503", 503, "unavailable", read, 3},
		{"read, 502", 502, "", read, 3},
		{"read, 404", 404, "not_found", read, 1},
		{"read, 500", 500, "internal", read, 1},
		{"create, 503 that may have happened", 503, "unavailable", create, 1},
		{"create, 503 before it was tried", 503, "cannot_verify", create, 3},
		{"create, 429", 429, "rate_limited", create, 3},
		{"delete, 503", 503, "unavailable", remove, 1},
		{"refresh, 503", 503, "unavailable", refresh, 1},
	} {
		url, calls := serve(t, answer(tt.status, `{"code":"`+tt.code+`","message":"m"}`))
		c := newClient(t, apiclient.Options{URL: url, Retry: apiclient.Retry{Attempts: 3}})
		if err := tt.call(c); apiclient.StatusOf(err) != tt.status {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := calls.Load(); got != tt.want {
			t.Errorf("%s: %d requests, want %d", tt.name, got, tt.want)
		}
	}
}

func TestInstancesAreTriedInTurn(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	goneURL := gone.URL
	gone.Close()
	sick, sickCalls := serve(t, answer(503, `{"code":"unavailable","message":"m"}`))
	well, wellCalls := serve(t, answer(200, `{"items":[],"next_seq":9}`))
	c := newClient(t, apiclient.Options{URL: goneURL + ", " + sick + "," + well})
	for range 5 {
		if s, err := c.TenantsSnapshot(t.Context()); err != nil || s.NextSeq != 9 {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	if sickCalls.Load() != 1 || wellCalls.Load() != 5 {
		t.Errorf("%d requests to the sick instance and %d to the well one: what answered last is asked first", sickCalls.Load(), wellCalls.Load())
	}
	// A write that was never sent goes on to the next; nothing is listening there.
	c = newClient(t, apiclient.Options{URL: goneURL + "," + well})
	if err := c.DeleteTenant(t.Context(), "t"); err != nil {
		t.Errorf("delete: %v", err)
	}
	c = newClient(t, apiclient.Options{URL: goneURL})
	_, err := c.TenantsSnapshot(t.Context())
	var away *apiclient.UnreachableError
	if !errors.As(err, &away) {
		t.Errorf("%v is no *UnreachableError", err)
	}
}

func TestAnInstanceThatHangsIsLeft(t *testing.T) {
	release := make(chan struct{})
	hung, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	well, _ := serve(t, answer(200, `{"items":[],"next_seq":9}`))
	c := newClient(t, apiclient.Options{URL: hung + "," + well, Timeout: 100 * time.Millisecond})
	if _, err := c.TenantsSnapshot(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.TenantsSnapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
}

func TestRequestsCarryTokenAndNames(t *testing.T) {
	var seen atomic.Pointer[http.Request]
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r)
		answer(200, `{"keys":[]}`)(w, r)
	})
	c := newClient(t, apiclient.Options{URL: url + "/base/", UserAgent: "felix-test"})
	if _, err := c.Stream(t.Context(), model.StreamKey{TenantID: "a/b", Namespace: "..", Stream: "x?y#%"}); err != nil {
		t.Fatal(err)
	}
	r := seen.Load()
	if got, want := r.URL.EscapedPath(), "/base/v1/tenants/a%2Fb/namespaces/../streams/x%3Fy%23%25"; got != want {
		t.Errorf("path is %s, want %s", got, want)
	}
	if r.Header.Get("Authorization") != "Bearer "+secret || r.UserAgent() != "felix-test" {
		t.Errorf("headers are %v", r.Header)
	}
	if _, err := c.JWKS(t.Context(), "t1"); err != nil {
		t.Fatal(err)
	}
	if seen.Load().Header.Get("Authorization") != "" {
		t.Error("a public route got the token")
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for _, o := range []apiclient.Options{
		{}, {URL: " , "}, {URL: "host:8443"}, {URL: "ftp://host"}, {URL: "http://user:pw@host"}, {URL: "http://host?x=1"},
		{URL: "http://host", CAPEM: []byte("x")}, {URL: "https://host", CAPEM: []byte("no PEM")}, {URL: "http://%zz"},
	} {
		if _, err := apiclient.New(o); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestListingsAreReadToTheirEnd(t *testing.T) {
	url, calls := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("cursor") {
		case "":
			answer(200, `{"items":[{"tenant_id":"a"}],"next_cursor":"2"}`)(w, r)
		case "2":
			answer(200, `{"items":[{"tenant_id":"b"}]}`)(w, r)
		}
	})
	c := newClient(t, apiclient.Options{URL: url})
	all, err := c.Tenants(t.Context())
	if err != nil || len(all) != 2 || calls.Load() != 2 {
		t.Errorf("%+v, %v, %d calls", all, err, calls.Load())
	}
	bare, _ := serve(t, answer(200, `[{"user":"u","role":"r"}]`))
	rules, err := newClient(t, apiclient.Options{URL: bare}).Groupings(t.Context(), "t")
	if err != nil || len(rules) != 1 || rules[0].Role != "r" {
		t.Errorf("%+v, %v", rules, err)
	}
}
