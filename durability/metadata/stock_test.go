package metadata

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
)

// A stock is a broker with data, and what the data is.
type stock struct {
	t     *testing.T
	p     *plane
	b     *brokerProcess
	plane string // directory of the metadata
	front *front // between broker and plane
	want  map[string][]string
	files map[string]file
}

// The streams and the cache of a stock. What came later is missing from an older
// copy of the metadata.
var stockStreams = []string{"orders", "later"}

// newStock makes a broker with data that has seen its control plane through
// front. before is called when half of it is made.
func newStock(t *testing.T, before func(s *stock)) *stock {
	t.Helper()
	s := &stock{t: t, plane: filepath.Join(t.TempDir(), "plane"), want: make(map[string][]string)}
	s.p = lonePlane(t, s.plane)
	s.front = newFront(t, s.p.urls[0])
	s.b = s.p.brokerAt(s.front.URL, "b1")
	s.b.start()
	c := s.b.dial(t)
	for i, name := range stockStreams {
		if i == 1 && before != nil {
			before(s)
		}
		s.p.createStream(name, 2, true)
		for n := range 5 {
			text := fmt.Sprintf("%s-%d", name, n)
			publish(t, c, name, text)
			s.want[name] = append(s.want[name], text)
		}
	}
	s.p.createCache("latest", 1)
	put(t, c.Cache("latest"), "k", "v")
	s.b.terminate()
	s.files = s.b.files(t)
	if len(s.files) < 5 {
		t.Fatalf("the broker has %d files", len(s.files))
	}
	return s
}

// serves reads everything back that the broker has.
func (s *stock) serves() {
	s.t.Helper()
	c := s.b.dial(s.t)
	for _, name := range stockStreams {
		if got := records(s.t, c, name, 0); !slices.Equal(got, s.want[name]) {
			s.t.Errorf("%s has %q, want %q", name, got, s.want[name])
		}
	}
	ctx, cancel := bounded(s.t)
	defer cancel()
	if got, found, err := c.Cache("latest").Get(ctx, "k"); err != nil || !found || string(got) != "v" {
		s.t.Errorf("the cache holds %q (%t), %v", got, found, err)
	}
}

// keeps compares the files with what they were.
func (s *stock) keeps() {
	s.t.Helper()
	if err := s.b.keeps(s.files); err != nil {
		s.t.Errorf("data is gone: %v", err)
	}
}

// writes adds to what is served.
func (s *stock) writes() {
	s.t.Helper()
	c := s.b.dial(s.t)
	for _, name := range stockStreams {
		text := fmt.Sprintf("%s-%d", name, len(s.want[name]))
		publish(s.t, c, name, text)
		s.want[name] = append(s.want[name], text)
	}
}

// A front is what a broker takes for its control plane: it hands on, or answers
// in its own way.
type front struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int64 // requests that it answered itself
}

func newFront(t *testing.T, target string) *front {
	t.Helper()
	f := new(front)
	f.turn(t, target)
	hand := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(f.target.Load()) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := f.answer.Load(); h != nil {
			f.asked.Add(1)
			(*h)(w, r)
			return
		}
		hand.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// turn makes another control plane stand behind the front.
func (f *front) turn(t *testing.T, target string) {
	t.Helper()
	u, err := url.Parse(target)
	must(t, err)
	f.target.Store(u)
}

// answers has the front answer everything alike; an empty body ends that.
func (f *front) answers(status int, kind, body string) {
	if body == "" {
		f.answer.Store(nil)
		return
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	f.answer.Store(&h)
}
