package session_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/wire"
)

// probe asks the node's HTTP listener.
func probe(t *testing.T, n *felixtest.Node, path string) (status int, body string) {
	t.Helper()
	return probeURL(t, n.AdminURL()+path)
}

func probeURL(t *testing.T, url string) (status int, body string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// unready waits until /ready refuses with a reason that has all words in it;
// /live answers meanwhile.
func unready(t *testing.T, n *felixtest.Node, words ...string) {
	t.Helper()
	waitFor(t, "a reason with "+strings.Join(words, ", "), func() bool {
		status, body := probe(t, n, "/ready")
		if live, _ := probe(t, n, "/live"); live != 200 {
			t.Fatalf("/live answers %d", live)
		}
		for _, word := range words {
			if !strings.Contains(body, word) {
				return false
			}
		}
		return status == 503
	})
}

func ready(t *testing.T, n *felixtest.Node) {
	t.Helper()
	waitFor(t, "/ready", func() bool { status, _ := probe(t, n, "/ready"); return status == 200 })
}

// records reads a durable stream by pages.
func records(t *testing.T, n *felixtest.Node, stream string) [][]byte {
	t.Helper()
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	var all [][]byte
	for from := uint64(0); ; {
		m := p.read(from)
		m.Stream = stream
		l.say(m)
		r, is := l.message().(*wire.StreamRecords)
		if !is {
			t.Fatalf("read at %d: %#v", from, r)
		}
		if len(r.Records) == 0 {
			return all
		}
		for _, rec := range r.Records {
			if rec.Offset != uint64(len(all)) {
				t.Fatalf("record at %d, want %d", rec.Offset, len(all))
			}
			all = append(all, rec.Payload)
		}
		from = r.NextOffset
	}
}

// A disk that fills up refuses writes with nothing kept, and says so; reads go
// on, also after a restart on the full disk; when there is room again writes
// resume by themselves (BR-13, BR-54).
func TestFullDisk(t *testing.T) {
	files := fstest.NewFaults(fs.OS())
	n := felixtest.Start(t, felixtest.WithFileSystem(files), felixtest.WithSetting("storage-journal-bytes", "0"), felixtest.WithSetting("storage-soft-free-bytes", "0"),
		felixtest.WithSetting("durable-segment-bytes", "1MiB"))
	p := dial(t, n)
	k := p.keeper()
	k.put("k", "before")
	files.SetQuota(3 << 20)

	const publishers, batch, size = 8, 16, 4 << 10
	var mu sync.Mutex
	acked := make(map[uint64]bool) // batches by number
	full := 0
	var work sync.WaitGroup
	for worker := range uint64(publishers) {
		l := p.login(modern(), n.Token())
		work.Go(func() {
			refusals := 0
			for i := uint64(0); refusals < 3; i++ {
				number := worker<<32 | i
				payloads := make([][]byte, batch)
				for j := range payloads {
					payloads[j] = append(binary.BigEndian.AppendUint64(nil, number), bytes.Repeat([]byte{byte(j)}, size)...)
				}
				if _, err := l.st.Write(p.publish(i, "s", payloads...).Append(nil)); err != nil {
					t.Error(err)
					return
				}
				h, payload, err := l.in.Next()
				var a wire.Ack
				if err == nil {
					err = wire.ParseAck(h.Flags, payload, &a)
				}
				switch {
				case err != nil || a.RequestID != i:
					t.Errorf("answer to %d: %+v %v", i, a, err)
					return
				case a.Failed && a.Code == wire.CodeOverloaded && a.Retry == wire.RetryAfter && a.Detail.Reason == "storage_full" && a.Detail.RetryAfterMS > 0:
					refusals++
					mu.Lock()
					full++
					mu.Unlock()
				case a.Failed:
					t.Errorf("batch %d: %v %v %s", i, a.Code, a.Retry, a.Message)
					return
				default:
					mu.Lock()
					acked[number] = true
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	if t.Failed() || full == 0 || len(acked) == 0 {
		t.Fatalf("%d batches acknowledged, %d refused", len(acked), full)
	}
	unready(t, n, "storage full")

	check := func(when string) {
		t.Helper()
		all := records(t, n, "s")
		if len(all) != batch*len(acked) {
			t.Fatalf("%s: %d records, want %d batches of %d", when, len(all), len(acked), batch)
		}
		for i, rec := range all {
			if number := binary.BigEndian.Uint64(rec); !acked[number] || rec[8] != byte(i%batch) || len(rec) != 8+size {
				t.Fatalf("%s: record %d is part %d of batch %x", when, i, rec[8], number)
			}
		}
	}
	check("on the full disk")
	n.Restart()
	check("after a restart on the full disk")
	p = dial(t, n)
	l := p.login(modern(), n.Token())
	l.say(&wire.CacheGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k"), RequestID: wire.Some[uint64](1)})
	if v, is := l.message().(*wire.CacheValue); !is || string(v.Value.Value) != "before" {
		t.Fatalf("get on the full disk: %+v", v)
	}
	l.say(&wire.CachePut{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k"), Value: make([]byte, 1<<20), RequestID: wire.Some[uint64](2)})
	expectError(t, l.message(), "overloaded", "retry_after")

	files.LiftQuota()
	waitFor(t, "writes to resume", func() bool {
		l.send(p.publish(7, "s", []byte("again")).Append(nil))
		return !l.ack().Failed
	})
	p.keeper().put("k", "after")
	ready(t, n)
	if all := records(t, n, "s"); string(all[len(all)-1]) != "again" {
		t.Fatal("the write that resumed is not there")
	}
}

// Little free space refuses writes before the disk is full, and metric and
// readiness name it.
func TestLittleFreeSpace(t *testing.T) {
	files := fstest.NewFaults(fs.OS())
	n := felixtest.Start(t, felixtest.WithFileSystem(files), felixtest.WithSetting("storage-soft-free-bytes", "1MiB"))
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	l.send(p.publish(1, "s", []byte("x")).Append(nil))
	if a := l.ack(); a.Failed {
		t.Fatalf("publish: %+v", a)
	}
	files.SetQuota(1 << 10)
	unready(t, n, "bytes are free")
	if v := metric(t, n, "felix_storage_low_space"); v != "1" {
		t.Errorf("felix_storage_low_space is %s", v)
	}
	if v := metric(t, n, "felix_ready_state"); v != "0" {
		t.Errorf("felix_ready_state is %s", v)
	}
	l.send(p.publish(2, "s", []byte("x")).Append(nil))
	if a := l.ack(); !a.Failed || a.Code != wire.CodeOverloaded || a.Detail.Reason != "storage_full" {
		t.Fatalf("publish with little space: %+v", a)
	}
	files.LiftQuota()
	ready(t, n)
	l.send(p.publish(3, "s", []byte("x")).Append(nil))
	if a := l.ack(); a.Failed || a.Offset != 1 {
		t.Fatalf("publish with space again: %+v", a)
	}
}

// A flush that fails leaves the outcome unknown and ends the writes of that
// log alone; what is durable can be read, and a restart takes writes again.
func TestFailedFlush(t *testing.T) {
	files := fstest.NewFaults(fs.OS())
	n := felixtest.Start(t, felixtest.WithFileSystem(files), felixtest.WithSetting("storage-journal-bytes", "0"))
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	publish := func(id uint64, stream string) wire.Ack {
		t.Helper()
		l.send(p.publish(id, stream, []byte("x")).Append(nil))
		return l.ack()
	}
	for _, stream := range []string{"bad", "good"} {
		if a := publish(1, stream); a.Failed || a.Offset != 0 {
			t.Fatalf("%s: %+v", stream, a)
		}
	}
	files.FailSync("_bad_", 1)
	if a := publish(2, "bad"); !a.Failed || a.Code != wire.CodeStorage || a.Retry != wire.OutcomeUnknown {
		t.Fatalf("under the failed flush: %+v", a)
	}
	if a := publish(3, "bad"); !a.Failed || a.Code != wire.CodeShardUnavailable || a.Retry != wire.Retry || a.Detail.Reason != "failed" {
		t.Fatalf("after it: %+v", a)
	}
	if a := publish(4, "good"); a.Failed || a.Offset != 1 {
		t.Fatalf("the other stream: %+v", a)
	}
	if all := records(t, n, "bad"); len(all) != 1 {
		t.Fatalf("%d records can be read", len(all))
	}
	unready(t, n, "t1/default/bad/0")
	if v := metric(t, n, "felix_storage_logs_failed"); v != "1" {
		t.Errorf("felix_storage_logs_failed is %s", v)
	}
	n.Restart()
	ready(t, n)
	p = dial(t, n)
	l = p.login(modern(), n.Token())
	if a := publish(5, "bad"); a.Failed {
		t.Fatalf("after a restart: %+v", a)
	}
}

// A log that is damaged below what was acknowledged is refused, by name, file
// and position; the others serve, and the node says why it is not ready.
func TestDamagedLogIsRefused(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for i := range uint64(5) {
		for _, stream := range []string{"bad", "good"} {
			l.send(p.publish(i, stream, bytes.Repeat([]byte("x"), 1000)).Append(nil))
			if a := l.ack(); a.Failed {
				t.Fatalf("%s: %+v", stream, a)
			}
		}
	}
	n.Stop()
	damage(t, n.DataDir(), "_bad_", 2000)
	n.Restart()
	p = dial(t, n)
	l = p.login(modern(), n.Token())
	l.send(p.publish(9, "bad", []byte("x")).Append(nil))
	a := l.ack()
	if !a.Failed || a.Code != wire.CodeShardUnavailable || a.Detail.Reason != "failed" || !strings.Contains(a.Message, "t1/default/bad/0") {
		t.Fatalf("publish to the damaged shard: %+v", a)
	}
	l.say(&wire.Subscribe{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "bad"})
	expectError(t, l.message(), "shard_unavailable", "retry")
	l.ended()
	l = p.login(modern(), n.Token())
	l.send(p.publish(10, "good", []byte("x")).Append(nil))
	if a := l.ack(); a.Failed || a.Offset != 5 {
		t.Fatalf("publish beside it: %+v", a)
	}
	unready(t, n, "t1/default/bad/0", "log")
	if v := metric(t, n, "felix_storage_shards_refused"); v != "1" {
		t.Errorf("felix_storage_shards_refused is %s", v)
	}
}

// damage flips a bit of the largest file of a shard's directory.
func damage(t *testing.T, root, shard string, at int64) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "*"+shard+"*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("directories of %s: %q %v", shard, dirs, err)
	}
	var largest string
	var size int64
	entries, err := os.ReadDir(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Size() > size {
			largest, size = filepath.Join(dirs[0], e.Name()), info.Size()
		}
	}
	data, err := os.ReadFile(largest)
	if err != nil || int64(len(data)) <= at {
		t.Fatalf("%s has %d bytes: %v", largest, len(data), err)
	}
	data[at] ^= 1
	if err := os.WriteFile(largest, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
