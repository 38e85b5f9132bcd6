package coalesce

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
)

// slowWriter holds each write until it is let go.
type slowWriter struct {
	entered chan struct{}
	release chan struct{}
	writes  [][]byte
}

func (s *slowWriter) Write(b []byte) (int, error) {
	s.entered <- struct{}{}
	<-s.release
	s.writes = append(s.writes, bytes.Clone(b))
	return len(b), nil
}

func TestWritesMadeDuringAWriteLeaveTogether(t *testing.T) {
	s := &slowWriter{entered: make(chan struct{}), release: make(chan struct{})}
	c := Writer{W: s}
	done := make(chan error)
	go func() { done <- c.Write([]byte("a"), nil) }()
	<-s.entered
	for _, b := range []string{"b", "c", "d"} { // none of these blocks
		if err := c.Write([]byte(b), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.release <- struct{}{}
	<-s.entered
	s.release <- struct{}{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := string(bytes.Join(s.writes, []byte("|"))); got != "a|bcd" {
		t.Errorf("writes %q, want a|bcd", got)
	}
}

func TestQueuedIsCalledInTheOrderOfTheStream(t *testing.T) {
	var out bytes.Buffer
	c := Writer{W: &out}
	var order []byte
	var wg sync.WaitGroup
	for w := range byte(16) {
		wg.Go(func() {
			for range 200 {
				if err := c.Write([]byte{w}, func() { order = append(order, w) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(order, out.Bytes()) || len(order) != 16*200 {
		t.Errorf("%d writes announced, %d bytes written, in another order", len(order), out.Len())
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestAFailedWriteFailsAllLaterOnes(t *testing.T) {
	c := Writer{W: brokenWriter{}}
	for range 2 {
		if err := c.Write(binary.BigEndian.AppendUint16(nil, 1), nil); !errors.Is(err, errBroken) {
			t.Errorf("Write = %v, want broken", err)
		}
	}
}

func TestAnIdleStreamIsTriedFirst(t *testing.T) {
	var written, tried bytes.Buffer
	room := 2
	c := Writer{W: &written, Try: func(b []byte) error {
		if len(b) > room {
			return errBroken
		}
		room -= len(b)
		tried.Write(b)
		return nil
	}}
	for _, b := range []string{"a", "b", "c"} {
		if err := c.Write([]byte(b), nil); err != nil {
			t.Fatal(err)
		}
	}
	if tried.String() != "ab" || written.String() != "c" {
		t.Errorf("tried %q, wrote %q; want ab, c", tried.String(), written.String())
	}
}
