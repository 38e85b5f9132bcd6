package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/auth"
)

// files is a file system in memory with a clock of its own.
type files struct {
	now     time.Time
	content map[string]string
	changed map[string]time.Time
	reads   int
	onRead  func(name string) // before a read answers
}

func newFiles() *files {
	return &files{now: time.Unix(1_000_000, 0), content: make(map[string]string), changed: make(map[string]time.Time)}
}

func (f *files) write(name, content string) {
	f.content[name], f.changed[name] = content, f.now
}

func (f *files) ReadFile(name string) ([]byte, error) {
	f.reads++
	if f.onRead != nil {
		f.onRead(name)
	}
	content, found := f.content[name]
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(content), nil
}

func (f *files) Stat(name string) (fs.FileInfo, error) {
	content, found := f.content[name]
	if !found {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return info{size: int64(len(content)), changed: f.changed[name]}, nil
}

type info struct {
	fs.FileInfo
	size    int64
	changed time.Time
}

func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.changed }

// validName is a small grammar for tests.
func validName(kind, name string) error {
	if name == "" || strings.ContainsAny(name, "/:*# ") {
		return fmt.Errorf("%s name %q is not valid", kind, name)
	}
	return nil
}

// model is a target that holds what it was given, and refuses what a target
// is never asked for.
type model struct {
	t     testing.TB
	holds map[string]bool // "tenant", "tenant/ns", "stream tenant/ns/s {...}", "key tenant id"
	steps []string
	fail  func(step string) bool

	retention map[string]Retention // of streams
}

func newModel(t testing.TB) *model {
	return &model{t: t, holds: make(map[string]bool), retention: make(map[string]Retention)}
}

var errModel = errors.New("target refuses")

func (m *model) step(format string, args ...any) error {
	step := fmt.Sprintf(format, args...)
	if m.fail != nil && m.fail(step) {
		return errModel
	}
	m.steps = append(m.steps, step)
	return nil
}

func (m *model) add(item, within string) error {
	if within != "" && !m.holds[within] {
		m.t.Errorf("%s is added to %s, which is not there", item, within)
	}
	if m.holds[item] {
		m.t.Errorf("%s is added twice", item)
	}
	if err := m.step("add %s", item); err != nil {
		return err
	}
	m.holds[item] = true
	return nil
}

// remove drops the item and everything whose name begins as within says.
func (m *model) remove(item string, within ...string) error {
	if !m.holds[item] {
		m.t.Errorf("%s is removed and not there", item)
	}
	if err := m.step("remove %s", item); err != nil {
		return err
	}
	delete(m.holds, item)
	for held := range m.holds {
		for _, prefix := range within {
			if strings.HasPrefix(held, prefix) {
				delete(m.holds, held)
			}
		}
	}
	return nil
}

func (m *model) AddTenant(t string) error { return m.add("tenant "+t, "") }
func (m *model) RemoveTenant(t string) error {
	return m.remove("tenant "+t, "namespace "+t+"/", "stream "+t+"/", "cache "+t+"/")
}
func (m *model) AddNamespace(t, n string) error { return m.add("namespace "+t+"/"+n, "tenant "+t) }
func (m *model) RemoveNamespace(t, n string) error {
	return m.remove("namespace "+t+"/"+n, "stream "+t+"/"+n+"/", "cache "+t+"/"+n+"/")
}
func (m *model) AddStream(t, n string, s Stream) error {
	item := "stream " + t + "/" + n + "/" + s.Name
	if m.holds[item] && m.retention[item] != s.Retention {
		if err := m.step("keep %d bytes of %s", s.Retention.MaxBytes, item); err != nil {
			return err
		}
		m.retention[item] = s.Retention
		return nil
	}
	if err := m.add(item, "namespace "+t+"/"+n); err != nil {
		return err
	}
	m.retention[item] = s.Retention
	return nil
}
func (m *model) RemoveStream(t, n, s string) error {
	return m.remove("stream " + t + "/" + n + "/" + s)
}
func (m *model) AddCache(t, n string, c Cache) error {
	return m.add("cache "+t+"/"+n+"/"+c.Name, "namespace "+t+"/"+n)
}
func (m *model) RemoveCache(t, n, c string) error { return m.remove("cache " + t + "/" + n + "/" + c) }

func (m *model) SetKeys(t string, keys []auth.Key) error {
	if !m.holds["tenant "+t] {
		m.t.Errorf("keys of %s are set, which is not there", t)
	}
	if err := m.step("set %d keys of %s", len(keys), t); err != nil {
		return err
	}
	for held := range m.holds {
		if strings.HasPrefix(held, "key "+t+" ") {
			delete(m.holds, held)
		}
	}
	for _, k := range keys {
		m.holds["key "+t+" "+k.ID] = true
	}
	return nil
}

func (m *model) list() []string { return sorted(m.holds) }

// contents lists a catalog as a model that holds it.
func contents(c *Catalog) []string {
	holds := make(map[string]bool)
	for _, t := range c.Tenants {
		holds["tenant "+t.Name] = true
		for _, k := range t.Keys {
			holds["key "+t.Name+" "+k.ID] = true
		}
		for _, ns := range t.Namespaces {
			path := t.Name + "/" + ns.Name
			holds["namespace "+path] = true
			for _, s := range ns.Streams {
				holds["stream "+path+"/"+s.Name] = true
			}
			for _, c := range ns.Caches {
				holds["cache "+path+"/"+c.Name] = true
			}
		}
	}
	return sorted(holds)
}

func (m *model) expectSteps(want ...string) {
	m.t.Helper()
	if !slices.Equal(m.steps, want) {
		m.t.Errorf("steps are %q, want %q", m.steps, want)
	}
	m.steps = nil
}
