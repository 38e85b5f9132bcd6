package durability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/dev"
)

// asWorker makes this test binary be a worker of a group: a process that does
// what a handler does, writes down what it did, and can be killed.
const asWorker = "as-worker"

// A job is what a worker is told, as JSON in its one argument.
type job struct {
	Broker        dev.Access `json:"broker"`
	Stream, Group string
	// Diary is the file in which it writes what it did.
	Diary string
	// Name is the consumer's; empty: it has none. Handlers is how many run
	// at once, Batch how many records a poll claims; 0: as the client has it.
	Name     string
	Handlers int
	Batch    int
	// Visibility is how long claims stand.
	Visibility time.Duration
	// Work is how long the handling of a record takes.
	Work time.Duration
	// Retry is how long a record stays back on which the handler failed; 0:
	// as the client has it.
	Retry time.Duration
}

// The records on which a handler does not just succeed begin so.
const (
	poison = "poison" // it fails, always
	fails  = "fails"  // it fails the first time
	panics = "panics" // it panics the first time
)

// The entries of a diary: one line each, in one write, "begin 17 2".
const (
	begun    = "begin" // the handler has begun with a delivery
	finished = "done"  // it has done its work, and is about to return without an error
	failed   = "fail"  // it is about to fail
)

// workerMain is the life of a worker; it ends when its standard input does.
func workerMain(argument string) int {
	if err := work(argument); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func work(argument string) error {
	var j job
	if err := json.Unmarshal([]byte(argument), &j); err != nil {
		return err
	}
	diary, err := os.OpenFile(j.Diary, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer diary.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	c, err := j.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Consume(ctx, c.Group(j.Stream, j.Group), func(ctx context.Context, d client.Delivery) error {
		return j.handle(ctx, diary, d)
	}, j.options()...)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// dial waits for the node, which may be dead at the moment.
func (j *job) dial(ctx context.Context) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c, err := j.Broker.Dial(ctx, noticing)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (j *job) options() []client.ConsumeOption {
	var options []client.ConsumeOption
	if j.Name != "" {
		options = append(options, client.ConsumeAs(j.Name))
	}
	if j.Handlers != 0 {
		options = append(options, client.ConsumeConcurrency(j.Handlers))
	}
	if j.Batch != 0 {
		options = append(options, client.ConsumeBatch(j.Batch))
	}
	if j.Visibility != 0 {
		options = append(options, client.ConsumeVisibility(j.Visibility))
	}
	return options
}

// handle is the handler: the record is finished when it returns without an
// error, and not before.
func (j *job) handle(ctx context.Context, diary io.Writer, d client.Delivery) error {
	note := func(what string) {
		if _, err := fmt.Fprintf(diary, "%s %d %d\n", what, d.Offset, d.Attempts); err != nil {
			panic(err)
		}
	}
	note(begun)
	timer := time.NewTimer(j.Work)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	kind, _, _ := strings.Cut(string(d.Payload), "/")
	switch {
	case kind == panics && d.Attempts == 1:
		note(failed)
		panic(panics)
	case kind == poison, kind == fails && d.Attempts == 1:
		note(failed)
		err := errors.New("the handler failed")
		if j.Retry != 0 {
			return client.RetryAfter(j.Retry, err)
		}
		return err
	}
	note(finished)
	return nil
}

// A workerProcess is a worker that can be killed.
type workerProcess struct {
	cmd *exec.Cmd
	in  io.Closer
	// said is what it wrote on its standard error; to be read once it ended.
	said bytes.Buffer
}

// startWorker starts a worker. It is gone at the end of the test at the
// latest.
func startWorker(t *testing.T, j job) *workerProcess {
	t.Helper()
	argument, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	w := &workerProcess{cmd: exec.Command(os.Args[0], asWorker, string(argument))}
	w.cmd.Stderr = &w.said
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may be gone already
		_ = w.cmd.Wait()
	})
	return w
}

// kill ends it as kill -9 does, and fails the test if it was gone.
func (w *workerProcess) kill(t *testing.T) {
	t.Helper()
	_ = w.cmd.Process.Kill()
	err := w.cmd.Wait()
	if w.cmd.ProcessState.Exited() || w.said.Len() > 0 {
		t.Fatalf("the worker was gone already: %v\n%s", err, &w.said)
	}
}

// dismiss lets it finish what it has begun.
func (w *workerProcess) dismiss(t *testing.T) {
	t.Helper()
	_ = w.in.Close()
	if err := w.cmd.Wait(); err != nil || w.said.Len() > 0 {
		t.Fatalf("the worker ended badly: %v\n%s", err, &w.said)
	}
}

// diaries are what all workers of a group wrote, read as far as they have
// come.
type diaries struct {
	dir   string
	files int
	read  map[string]int64
	// deliveries counts, for each offset, how often it was handed to a handler
	// with which number of attempts.
	deliveries map[uint64]map[uint32]int
	done       map[uint64]int // handled to the end, how often
	failed     map[uint64]int
	handled    int // to the end, well or not
}

func newDiaries(t *testing.T) *diaries {
	return &diaries{
		dir: t.TempDir(), read: make(map[string]int64),
		deliveries: make(map[uint64]map[uint32]int), done: make(map[uint64]int), failed: make(map[uint64]int),
	}
}

// next is the name of a new one.
func (d *diaries) next() string {
	d.files++
	return fmt.Sprintf("%s/%d", d.dir, d.files)
}

// look reads what was written since the last time.
func (d *diaries) look(t *testing.T) {
	t.Helper()
	for i := range d.files {
		path := fmt.Sprintf("%s/%d", d.dir, i+1)
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the worker has not come so far
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(io.NewSectionReader(f, d.read[path], 1<<40))
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		whole := text[:bytes.LastIndexByte(text, '\n')+1]
		d.read[path] += int64(len(whole))
		for line := range bytes.Lines(whole) {
			d.enter(t, string(line))
		}
	}
}

func (d *diaries) enter(t *testing.T, line string) {
	t.Helper()
	var what string
	var offset uint64
	var attempts uint32
	if _, err := fmt.Sscanf(line, "%s %d %d\n", &what, &offset, &attempts); err != nil {
		t.Fatalf("diary: %q: %v", line, err)
	}
	switch what {
	case begun:
		if d.deliveries[offset] == nil {
			d.deliveries[offset] = make(map[uint32]int)
		}
		d.deliveries[offset][attempts]++
	case finished:
		d.done[offset]++
		d.handled++
	case failed:
		d.failed[offset]++
		d.handled++
	default:
		t.Fatalf("diary: %q", line)
	}
}

// delivered is how often an offset was handed to a handler.
func (d *diaries) delivered(offset uint64) int {
	n := 0
	for _, times := range d.deliveries[offset] {
		n += times
	}
	return n
}

// checkAttempts looks for a count of attempts that went back. A kill of the
// node may cost the first delivery its count, and no other. A record that was
// finished while one before it was not is handed out again after a kill of
// the node, and then its count begins anew.
func (d *diaries) checkAttempts(t *testing.T, most uint32) {
	t.Helper()
	for offset, byAttempts := range d.deliveries {
		for attempts, times := range byAttempts {
			allowed := 1 + d.done[offset]
			if attempts == 1 {
				allowed++
			}
			if attempts < 1 || attempts > most || times > allowed {
				t.Fatalf("offset %d was handed out %d times with attempts %d; the most are %d attempts; all: %v",
					offset, times, attempts, most, byAttempts)
			}
		}
	}
}
