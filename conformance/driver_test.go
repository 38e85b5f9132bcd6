package conformance

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

// callLimit bounds every call into the published client. No call of it may
// take longer: the client itself gives up on an answer after 30 s.
const callLimit = 60 * time.Second

// A driver is a Python process with the published client in it, which a test
// steers call by call (python/driver.py).
type driver struct {
	t     *testing.T
	mu    sync.Mutex
	stdin io.WriteCloser
	next  int
	wait  map[int]chan driverAnswer
	gone  chan struct{}
}

type driverAnswer struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value"`
	End   bool            `json:"end"`
	Error *clientError    `json:"error"`
}

// A clientError is an exception the published client raised.
type clientError struct {
	Class   string         `json:"class"`
	Felix   bool           `json:"felix"`
	Message string         `json:"message"`
	Code    string         `json:"code"`
	Retry   string         `json:"retry"`
	Detail  map[string]any `json:"detail"`
}

func (e *clientError) Error() string {
	return fmt.Sprintf("%s(code=%q retry=%q detail=%v): %s", e.Class, e.Code, e.Retry, e.Detail, e.Message)
}

// errEnd is what an iterator that is at its end answers.
var errEnd = errors.New("iterator ended")

// errHang is what a call answers that does not come back.
var errHang = errors.New("call did not return")

func startDriver(t *testing.T) *driver {
	t.Helper()
	cmd := pythonClient(t).command("driver.py")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, stdin: stdin, wait: make(map[int]chan driverAnswer), gone: make(chan struct{})}
	go func() {
		defer close(d.gone)
		lines := bufio.NewReader(stdout)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var a driverAnswer
			if err := json.Unmarshal(line, &a); err != nil {
				continue
			}
			d.mu.Lock()
			if c := d.wait[a.ID]; c != nil {
				c <- a
				delete(d.wait, a.ID)
			}
			d.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		<-d.gone
		cmd.Wait()
	})
	return d
}

// A pending is a call under way.
type pending struct {
	d      *driver
	answer chan driverAnswer
}

func (d *driver) start(request map[string]any) pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	request["id"] = d.next
	p := pending{d, make(chan driverAnswer, 1)}
	d.wait[d.next] = p.answer
	b, err := json.Marshal(request)
	if err != nil {
		panic("driver request does not encode: " + err.Error())
	}
	if _, err := d.stdin.Write(append(b, '\n')); err != nil {
		p.answer <- driverAnswer{Error: &clientError{Class: "driver", Message: err.Error()}}
	}
	return p
}

// result waits for the call: errEnd, errHang or a *clientError say how it
// failed.
func (p pending) result(into any) error {
	select {
	case a := <-p.answer:
		switch {
		case a.Error != nil:
			return a.Error
		case a.End:
			return errEnd
		case into != nil:
			return json.Unmarshal(a.Value, into)
		}
		return nil
	case <-p.d.gone:
		return errors.New("the Python process ended")
	case <-time.After(callLimit):
		return errHang
	}
}

// connect makes a client under a name.
func (d *driver) connect(name, addr, caFile string, kwargs map[string]any) error {
	kw := map[string]any{"tenant_id": "t1", "token": "token", "ca_file": caFile}
	for k, v := range kwargs {
		kw[k] = v
	}
	return d.start(map[string]any{"new": "Client", "args": []any{addr}, "kwargs": kw, "as": name}).result(nil)
}

// call runs a method of a named object and decodes what it returns.
func (d *driver) call(into any, on, method string, args []any, kwargs map[string]any) error {
	return d.begin(on, method, args, kwargs).result(into)
}

// begin starts a call without waiting for it.
func (d *driver) begin(on, method string, args []any, kwargs map[string]any) pending {
	return d.start(map[string]any{"on": on, "call": method, "args": args, "kwargs": kwargs})
}

// keep runs a method and keeps its result under a name.
func (d *driver) keep(as, on, method string, args []any, kwargs map[string]any) error {
	return d.start(map[string]any{"on": on, "call": method, "args": args, "kwargs": kwargs, "as": as}).result(nil)
}

// attribute reads an attribute of a named object.
func (d *driver) attribute(into any, on, name string) error {
	return d.start(map[string]any{"on": on, "get": name}).result(into)
}

// pyBytes is a bytes argument.
func pyBytes(s string) map[string]string {
	return map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(s))}
}

// A pyEvent is a felix.Event; nil stands for None.
type pyEvent struct {
	Payload struct {
		Bytes []byte `json:"bytes"`
	} `json:"payload"`
	Offset        *uint64 `json:"offset"`
	SkippedBefore uint64  `json:"skipped_before"`
}

// nextEvent asks a subscription for its next event, waiting that many
// seconds; nil, nil is what the client answers for a timeout or an end.
func (d *driver) nextEvent(sub string, seconds float64) (*pyEvent, error) {
	var e *pyEvent
	err := d.call(&e, sub, "next_event", nil, map[string]any{"timeout": seconds})
	return e, err
}
