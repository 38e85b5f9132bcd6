package shardlog

import "errors"

// Close commits what is claimed, makes everything durable and refuses all
// further calls with *ClosedError. Closing again does nothing. It must not be
// called from a completion.
func (l *Log) Close() error {
	l.admin.Lock()
	defer l.admin.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.stopTimers()
	l.signalRoom()
	l.mu.Unlock()

	l.drain()
	l.roll.done.Wait()
	l.follow.Wait()
	l.flush.Lock()
	defer l.flush.Unlock()
	err := errors.Join(l.finish(), l.closeFiles())
	if l.opts.OnClosed != nil {
		l.opts.OnClosed()
	}
	return err
}

// finish leaves on disk what makes the next opening quick and exact.
func (l *Log) finish() error {
	if err := l.syncWritten(); err != nil {
		return err
	}
	l.finished.Store(true)
	if err := l.saveCommitOffset(); err != nil {
		return err
	}
	l.saveProducers(l.Tail())
	if err := l.mark.set(segmentMark(l.active, l.active.written)); err != nil {
		return l.fileError("mark", err)
	}
	return nil
}

// closeFiles gives up the descriptors. Readers keep theirs until they are done.
func (l *Log) closeFiles() error {
	for _, s := range l.segmentList() {
		l.forget(s)
		if s.held != nil { // the active one, and one whose seal has failed
			l.letGo(s)
		}
	}
	l.mark.mu.Lock()
	defer l.mark.mu.Unlock()
	if l.mark.file == nil {
		return nil
	}
	err := l.mark.file.Close()
	l.mark.file = nil
	return err
}
