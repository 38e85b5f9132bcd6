package cli

import (
	"errors"
	"io"
)

// A pubSource yields the messages to publish.
type pubSource interface {
	// next returns the next message, or io.EOF after the last. The slice is
	// not written to any more.
	next() ([]byte, error)
	// ready says whether next would return without waiting.
	ready() bool
	// size is the number of messages and of input bytes, 0 where nobody
	// knows.
	size() (messages, bytes uint64)
}

// pubSource opens what the flags and arguments name.
func (a *App) pubSource(f *pubFlags, data []string) (source pubSource, closeSource func(), err error) {
	nothing := func() {}
	if len(data) == 1 {
		switch {
		case f.file != "":
			return nil, nil, usageError("both DATA and --file; give one")
		case f.whole:
			return nil, nil, usageError("--whole is for --file and standard input, not for DATA")
		}
		return &repeated{from: &oneMessage{payload: []byte(data[0])}, times: f.count}, nothing, nil
	}
	in, err := a.openInput(f.file, "messages")
	if err != nil {
		return nil, nil, err
	}
	if f.whole {
		defer in.close()
		payload, err := in.readWhole()
		if err != nil {
			return nil, nil, err
		}
		return &repeated{from: &oneMessage{payload: payload}, times: f.count}, nothing, nil
	}
	lines := &lineMessages{lines: newLineReader(in, maxMessageBytes), bytes: in.size}
	return &repeated{from: lines, times: f.count}, in.close, nil
}

// oneMessage is a source of one message.
type oneMessage struct {
	payload []byte
	done    bool
}

func (m *oneMessage) next() ([]byte, error) {
	if m.done {
		return nil, io.EOF
	}
	m.done = true
	return m.payload, nil
}

func (m *oneMessage) ready() bool            { return true }
func (m *oneMessage) size() (uint64, uint64) { return 1, 0 }

// lineMessages is a source of one message a line.
type lineMessages struct {
	lines *lineReader
	bytes uint64
}

func (m *lineMessages) next() ([]byte, error) {
	line, err := m.lines.next()
	if _, tooLong := errors.AsType[*lineTooLongError](err); tooLong {
		return nil, &Error{Exit: ExitUsage, Err: err}
	}
	return line, err
}

func (m *lineMessages) ready() bool            { return m.lines.ready() }
func (m *lineMessages) size() (uint64, uint64) { return 0, m.bytes }

// repeated yields each message of another source several times.
type repeated struct {
	from    pubSource
	times   uint64
	current []byte
	left    uint64
}

func (r *repeated) next() ([]byte, error) {
	if r.left == 0 {
		payload, err := r.from.next()
		if err != nil {
			return nil, err
		}
		r.current, r.left = payload, r.times
	}
	r.left--
	return r.current, nil
}

func (r *repeated) ready() bool { return r.left > 0 || r.from.ready() }

func (r *repeated) size() (uint64, uint64) {
	messages, bytes := r.from.size()
	return messages * r.times, bytes * r.times
}
