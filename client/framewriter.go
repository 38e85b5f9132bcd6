package client

import (
	"errors"
	"sync"

	"github.com/felixlog/felix/transport"
)

const (
	// gatherBytes is the size at which gathered small frames make one Write.
	gatherBytes = 64 << 10
	// largeFrame is the size from which a frame is written by itself rather
	// than copied together with its neighbours.
	largeFrame = 16 << 10
	// directFrame is the largest frame a caller writes itself.
	directFrame = 32 << 10
	// queuedBytes is how much may wait for the stream before senders wait.
	queuedBytes = 128 << 10
)

// A frameWriter puts frames on one stream, in order. A frame that finds
// nothing else under way may be written by its sender at once; otherwise it
// queues, and the run goroutine writes all that has gathered, 16 to 64 KiB
// at a time. Its fields are guarded by mu, the mutex of the stream it
// belongs to.
type frameWriter struct {
	st   transport.SendStream
	mu   *sync.Mutex
	bufs *bufferPool

	queue   []segment // what waits, in order; the last may still grow
	spare   []segment // the queue's other backing array
	size    int       // bytes in queue
	writing bool      // run is inside Write
	finish  bool      // run shall end the stream when the queue is empty
	stopped bool      // run has ended or shall end
	put     uint64    // frames accepted
	taken   uint64    // frames that may have reached the peer

	wake chan struct{} // one token: there is something for run
	room func()        // called with mu held when the queue was taken
}

// A segment is the bytes of one Write: gathered frames in a pooled buffer,
// or one large frame that belongs to its sender as long as busy is set.
type segment struct {
	buf  []byte
	busy *bool // nil for a pooled buffer
	n    int   // frames
}

func (w *frameWriter) init(st transport.SendStream, mu *sync.Mutex, bufs *bufferPool, room func()) {
	w.st, w.mu, w.bufs, w.room = st, mu, bufs, room
	w.wake = make(chan struct{}, 1)
}

// full says that a sender should wait for room. mu is held.
func (w *frameWriter) full() bool { return w.size >= queuedBytes }

// sendAll accepts n frames that lie behind each other, in one write if
// nothing is under way and they fit the peer's window. mu is held.
func (w *frameWriter) sendAll(frames []byte, n int) error {
	extra := uint64(n - 1)
	w.put += extra
	taken := w.taken
	err := w.send(frames, nil, true)
	switch {
	case err != nil:
		return err
	case w.taken != taken:
		w.taken += extra
	default:
		w.queue[len(w.queue)-1].n += n - 1
	}
	return nil
}

// send accepts a frame. mu is held. With direct the frame is written right
// here if nothing is under way and it fits the peer's window. A frame is
// copied unless busy is given and the frame is large: then *busy stays set
// until it is written.
func (w *frameWriter) send(frame []byte, busy *bool, direct bool) error {
	w.put++
	if direct && !w.writing && w.size == 0 && len(frame) <= directFrame {
		err := w.st.TryWrite(frame)
		if err == nil {
			w.taken++
			return nil
		}
		if !errors.Is(err, transport.ErrWouldBlock) {
			return err
		}
	}
	w.enqueue(frame, busy)
	if !w.writing {
		w.signal()
	}
	return nil
}

func (w *frameWriter) enqueue(frame []byte, busy *bool) {
	w.size += len(frame)
	if busy != nil && len(frame) >= largeFrame {
		*busy = true
		w.queue = append(w.queue, segment{buf: frame, busy: busy, n: 1})
		return
	}
	if n := len(w.queue); n > 0 {
		if last := &w.queue[n-1]; last.busy == nil && len(last.buf)+len(frame) <= gatherBytes {
			last.buf = append(last.buf, frame...)
			last.n++
			return
		}
	}
	buf := append(w.bufs.get(len(frame)), frame...)
	w.queue = append(w.queue, segment{buf: buf, n: 1})
}

func (w *frameWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// end asks run to finish the stream once everything is written. mu is held.
func (w *frameWriter) end() {
	w.finish = true
	w.signal()
}

// stop makes run return, dropping what waits. mu is held.
func (w *frameWriter) stop() {
	w.stopped = true
	w.signal()
}

// run writes what gathers until the stream ends or fails. The error is nil
// after end or stop.
func (w *frameWriter) run() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.drop()
	for {
		for w.size == 0 && !w.stopped && !w.finish {
			w.mu.Unlock()
			<-w.wake
			w.mu.Lock()
		}
		switch {
		case w.stopped:
			return nil
		case w.size == 0:
			w.stopped = true
			return w.st.CloseWrite()
		}
		if err := w.writeQueue(); err != nil {
			return err
		}
	}
}

// writeQueue takes the queue and writes it with mu released.
func (w *frameWriter) writeQueue() error {
	queue := w.queue
	w.queue, w.spare = w.spare[:0], nil
	for _, s := range queue {
		w.taken += uint64(s.n)
	}
	w.size, w.writing = 0, true
	if w.room != nil {
		w.room()
	}
	w.mu.Unlock()
	var err error
	for _, s := range queue {
		if err == nil {
			_, err = w.st.Write(s.buf)
		}
	}
	w.mu.Lock()
	w.writing = false
	w.release(queue)
	w.spare = queue[:0]
	return err
}

func (w *frameWriter) release(queue []segment) {
	for i, s := range queue {
		if s.busy != nil {
			*s.busy = false
		} else {
			w.bufs.put(s.buf)
		}
		queue[i] = segment{}
	}
}

// drop gives back what was never written.
func (w *frameWriter) drop() {
	w.stopped = true
	w.release(w.queue)
	w.queue, w.size = nil, 0
}
