package mirror

import (
	"context"
	"errors"
	"strings"

	"github.com/felixlog/felix/controlplane/apiclient"
)

// makePass reads all feeds into the picture and makes the target agree with it.
// The error is that of the first feed that could not be read; the others were,
// unless nobody answers at all.
func (m *Mirror) makePass(ctx context.Context) error {
	m.pass.Lock()
	defer m.pass.Unlock()
	m.view.began()
	var failure error
	var failures uint64
	changed, whole := false, true
	for _, f := range m.feeds {
		read, err := f.read(ctx)
		changed = changed || read
		if ctx.Err() == nil || err == nil {
			m.heard(f.feedName(), err)
		}
		if err == nil {
			whole = whole && f.position().seeded
			continue
		}
		whole = false
		failures++
		if failure == nil {
			failure = err
		}
		var away *apiclient.UnreachableError
		if errors.As(err, &away) || ctx.Err() != nil {
			break
		}
	}
	if whole {
		m.pic.spare()
		m.pic.dropEmpty()
	}
	if changed || m.pic.touched.any() || len(m.failed) > 0 || len(m.pic.graves) > 0 {
		m.reconcile(ctx)
		if m.looked.all || len(m.named) > 0 {
			m.tellMissing()
		}
		m.publishLeads()
	}
	m.publish()
	m.view.ended(whole, failures)
	if changed {
		m.o.Changed()
	}
	return failure
}

// heard logs when a feed falls silent and when it speaks again.
func (m *Mirror) heard(name string, err error) {
	before, was := m.silent[name]
	switch {
	case err == nil && was:
		delete(m.silent, name)
		m.o.Logger.Info("control plane feed is read again", "feed", name)
	case err != nil && before != err.Error():
		m.silent[name] = err.Error()
		m.o.Logger.Warn("control plane feed cannot be read; what is known goes on being served", "feed", name, "error", err)
	}
}

// namedMissing is how many names one line of the log holds.
const namedMissing = 20

// tellMissing names what the control plane does not list any more, when that
// changes.
func (m *Mirror) tellMissing() {
	names := m.pic.missing()
	before := strings.Join(m.named, ",")
	m.named = names
	if strings.Join(names, ",") == before {
		return
	}
	if len(names) == 0 {
		m.o.Logger.Info("the control plane lists everything that is served again")
		return
	}
	m.o.Logger.Warn("served, and not listed by the control plane any more, without a deletion: nothing is removed. "+
		"If its store was lost or set back, restore it; if they are to go, create them again and delete them",
		"count", len(names), "names", names[:min(len(names), namedMissing)])
}
