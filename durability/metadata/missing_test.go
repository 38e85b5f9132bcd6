package metadata

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
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

// TestEmptyControlPlane starts a broker with data against a control plane that
// has forgotten everything, and against one that knows its operators alone.
func TestEmptyControlPlane(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	empty := newPlane(t)
	empty.instance("--raft-data-dir", filepath.Join(t.TempDir(), "empty")).launch()
	empty.up()
	s.front.turn(t, empty.urls[0])

	// Its credential is worth nothing there; it goes on with what it knew.
	s.b.start()
	s.b.saying("serving what this broker knew at its last run", "401", "cannot register with the control plane; trying again")
	s.serves()
	s.writes()
	s.keeps()

	// With a credential it reads that nothing of what it serves exists.
	empty.beginOperators()
	s.b.credential(empty.operator)
	s.b.saying("not listed by the control plane any more", "stream shop/default/orders", "cache shop/default/latest", "restore it")
	s.b.saying("registered with the control plane")
	s.serves()
	s.writes()
	s.serves()
	s.keeps()
	s.b.terminate()

	s.front.turn(t, s.p.urls[0])
	s.b.credential(s.p.operator)
	s.b.start()
	s.serves()
	s.keeps()
}

// TestOlderControlPlane restores an export that is older than what the broker
// has.
func TestOlderControlPlane(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump.json")
	s := newStock(t, func(s *stock) {
		s.p.instances[0].terminate()
		s.p.command("controlplane", "migrate", "export", "--raft-data-dir", s.plane, dump)
		s.p.restart(0)
	})
	s.p.instances[0].terminate()
	restored := filepath.Join(t.TempDir(), "restored")
	s.p.command("controlplane", "migrate", "import", "--raft-data-dir", restored, dump)
	old := &plane{t: t, idp: s.p.idp}
	old.instance("--raft-data-dir", restored).launch()
	old.up()
	s.front.turn(t, old.urls[0])

	s.b.start()
	s.b.saying("not listed by the control plane any more", "stream shop/default/later", "cache shop/default/latest")
	s.serves()
	s.writes()
	s.keeps()
	// The same name is another stream now: the data of the first is not served
	// under it, and not touched.
	old.operator, old.admin, old.worker = s.p.operator, s.p.admin, s.p.worker
	old.createStream("later", 2, true)
	s.b.saying("shop/default/later", "uid")
	s.keeps()
	if got := records(t, s.b.dial(t), "orders", 0); !slices.Equal(got, s.want["orders"]) {
		t.Errorf("orders has %q, want %q", got, s.want["orders"])
	}
}

// command runs a felix command to its end.
func (p *plane) command(args ...string) {
	p.t.Helper()
	c := newProcess(p.t, "command", nil, args...)
	c.launch()
	c.gone()
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Fatalf("%q ended with %d:\n%s", args, code, c.logged())
	}
}

// TestTruncatedState truncates what the broker knows, and then the control
// plane's own metadata.
func TestTruncatedState(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	state := s.b.state()
	halve(t, state)
	s.b.start()
	s.b.saying("cannot be read", state)
	s.serves()
	s.keeps()
	s.b.terminate()

	// Without a control plane it knows of nothing: it is not ready, and waits.
	halve(t, state)
	s.front.answers(503, "application/json", `{"code":"not_ready"}`)
	s.b.launch()
	eventually(t, "the broker asks", func() error {
		if n := s.front.asked.Load(); n < 3 {
			return fmt.Errorf("asked %d times", n)
		}
		return nil
	})
	s.keeps()
	s.front.answers(0, "", "")
	s.b.serving()
	s.serves()
	s.keeps()

	// The metadata is damaged: the instance refuses to run with it, by name,
	// and the broker goes on.
	s.p.instances[0].terminate()
	var database string
	must(t, filepath.WalkDir(s.plane, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Ext(path) == ".db" {
			database = path
			return nil
		}
		halve(t, path)
		return nil
	}))
	for _, size := range []int64{12 << 10, 4 << 10, 100, 0} {
		must(t, os.Truncate(database, size))
		s.p.instances[0].launch()
		s.p.instances[0].gone()
		if code := s.p.instances[0].cmd.ProcessState.ExitCode(); code == 0 {
			t.Errorf("an instance with metadata cut to %d bytes ends without an error", size)
		}
		s.p.instances[0].saying(database)
		s.writes()
		s.serves()
	}
	s.b.kill()
	s.b.start()
	s.serves()
	s.keeps()
}

func halve(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.Truncate(path, info.Size()/2))
}

// TestAnswersOfSomethingElse has something else answer in the place of the
// control plane for a while, to a running broker and to one that starts.
func TestAnswersOfSomethingElse(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	s.b.start()
	s.serves()
	for _, a := range []struct {
		status int
		kind   string
		body   string
	}{
		{404, "application/json", `{"code":"not_found","message":"no such route"}`},
		{404, "text/html", "<html><body>404 not found</body></html>"},
		{200, "application/json", `[]`},
		{200, "application/json", `{}`},
		{200, "application/json", `null`},
		{200, "text/html", "<html><body>Welcome</body></html>"},
		{200, "application/json", `{"items":[],"next_seq":0`},
		{401, "application/json", `{"code":"unauthorized","message":"who are you"}`},
		{403, "application/json", `{"code":"forbidden","message":"not you"}`},
	} {
		s.front.answers(a.status, a.kind, a.body)
		asked := s.front.asked.Load()
		eventually(t, "the broker asks", func() error {
			if n := s.front.asked.Load(); n < asked+10 {
				return fmt.Errorf("asked %d times", n-asked)
			}
			return nil
		})
		s.serves()
		s.writes()
		s.front.answers(0, "", "")
	}
	s.serves()
	s.b.saying("is read again")
	s.b.terminate()
	s.front.answers(200, "application/json", `[]`)
	s.b.start()
	s.serves()
	s.front.answers(0, "", "")
	s.writes()
	s.keeps()
}
