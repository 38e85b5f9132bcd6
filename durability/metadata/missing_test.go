package metadata

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

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
