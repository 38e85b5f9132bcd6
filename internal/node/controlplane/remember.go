package controlplane

import (
	"context"
	"time"
)

// saveInterval is the least time between two writes of what the broker knows.
// Where one takes long, as with many thousand streams, the pause is saveShare
// times as long as the write.
const (
	saveInterval = time.Second
	saveShare    = 20
)

// remember reads what the broker knew at its last run. A file that cannot be
// read is named, left as it is, and done without.
func (a *Agent) remember() *known {
	if a.file == "" {
		return nil
	}
	k, err := load(a.file)
	if err != nil {
		a.o.Logger.Error("what this broker knew at its last run cannot be read; it is written anew from the control plane", "file", a.file, "error", err)
		return nil
	}
	if k != nil && k.NodeID != a.o.NodeID {
		a.o.Logger.Warn("what this broker knew at its last run was known under another node id, and is not used", "file", a.file, "node_id", k.NodeID)
		return nil
	}
	return k
}

// changed notes that what the broker knows has changed.
func (a *Agent) changed() {
	select {
	case a.dirty <- struct{}{}:
	default:
	}
}

// keepState writes what the broker knows soon after it changes, and once more
// at the end.
func (a *Agent) keepState(ctx context.Context) {
	told := ""
	for {
		select {
		case <-a.dirty:
		case <-ctx.Done():
			a.writeState(&told)
			return
		}
		began := time.Now()
		a.writeState(&told)
		select {
		case <-time.After(max(saveInterval, saveShare*time.Since(began))):
		case <-ctx.Done():
			a.writeState(&told)
			return
		}
	}
}

func (a *Agent) writeState(told *string) {
	err := save(a.file, &known{NodeID: a.o.NodeID, State: a.mirror.State(), Peers: a.directory.peers(), Keys: a.heldKeys()})
	switch {
	case err == nil:
		*told = ""
	case err.Error() != *told:
		*told = err.Error()
		a.o.Logger.Error("what this broker knows cannot be kept: a start without the control plane would not serve it", "file", a.file, "error", err)
		a.changed()
	default:
		a.changed() // try again
	}
}
