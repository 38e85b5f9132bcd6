package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/internal/dev"
)

// dismissTime bounds the orderly end of a worker.
const dismissTime = 10 * time.Second

// A hand is a worker as the demo sees it: a process that is told things and
// tells things.
type hand struct {
	name  string
	cmd   *exec.Cmd
	told  *json.Encoder
	in    io.Closer
	ended chan struct{} // closed once everything it said was heard
	err   error         // how it ended; to be read once it has
	errs  dev.OutputTail
	// killed says that it was meant to end badly, explained that somebody was
	// told how it did.
	killed, explained atomic.Bool
}

// hire starts a worker. heard is called with each thing it says, in order.
func hire(command func() *exec.Cmd, o orders, heard func(deed)) (*hand, error) {
	cmd := command()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	h := &hand{name: o.Name, cmd: cmd, told: json.NewEncoder(in), in: in, ended: make(chan struct{})}
	cmd.Stderr = &h.errs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	go func() {
		defer close(h.ended)
		said := json.NewDecoder(out)
		for {
			var d deed
			if said.Decode(&d) != nil {
				break // how it ended tells why
			}
			heard(d)
		}
		h.err = cmd.Wait()
	}()
	if err := h.told.Encode(o); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", o.Name, err), h.kill())
	}
	return h, nil
}

// mend tells it not to fail any more.
func (h *hand) mend() error {
	if err := h.told.Encode(orders{Mend: true}); err != nil {
		return fmt.Errorf("tell %s: %w", h.name, err)
	}
	return nil
}

// kill ends it without warning, as kill -9 does, and returns when everything
// it had said was heard. One that is gone already is an error.
func (h *hand) kill() error {
	h.killed.Store(true)
	err := h.cmd.Process.Kill()
	<-h.ended
	if errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("%s was gone already", h.name), h.failure())
	}
	return err
}

// dismiss lets it finish what it has begun and returns when it is gone.
func (h *hand) dismiss() error {
	select {
	case <-h.ended:
		return h.failure()
	default:
	}
	_ = h.in.Close() // one that is gone has closed it
	timer := time.NewTimer(dismissTime)
	defer timer.Stop()
	select {
	case <-h.ended:
		return h.failure()
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not end within %s", h.name, dismissTime), h.kill())
	}
}

// failure is how it ended, if not well, for the first who asks.
func (h *hand) failure() error {
	if h.err == nil || h.explained.Swap(true) {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", h.name, h.err, &h.errs)
}
