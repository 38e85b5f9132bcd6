package quic

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/transport"
)

// Streams by the thousand on one connection, ended in every way: credit comes
// back, and nothing of them stays (BR-06).
func TestStreamChurn(t *testing.T) {
	const (
		streams = 10_000
		atOnce  = 64
	)
	e := newEnds(t, func(o *ListenOptions) { o.MaxStreams = atOnce }, nil)
	client, server := e.connect(t)
	baseline := runtime.NumGoroutine()

	serving := make(chan struct{})
	go func() {
		defer close(serving)
		var handlers sync.WaitGroup
		defer handlers.Wait()
		for range streams {
			s, err := server.AcceptStream(t.Context())
			if err != nil {
				t.Errorf("accept: %v", err)
				return
			}
			handlers.Go(func() { echoUntilEnd(s) })
		}
	}()

	var clients sync.WaitGroup
	for worker := range atOnce {
		clients.Go(func() {
			for i := worker; i < streams; i += atOnce {
				s, err := client.OpenStream(t.Context())
				if err != nil {
					t.Errorf("open stream %d: %v", i, err)
					return
				}
				if err := endStream(s, i); err != nil {
					t.Errorf("stream %d: %v", i, err)
					return
				}
			}
		})
	}
	clients.Wait()
	receive(t, serving)

	// All credit is back: as many as ever can be open at a time.
	for range atOnce {
		openStream(t, client, server)
	}
	eventually(t, "goroutines are back at the baseline", func() bool {
		return runtime.NumGoroutine() <= baseline
	})
}

// echoUntilEnd answers until either half is ended by the peer, and then ends
// both.
func echoUntilEnd(s transport.Stream) {
	_, err := io.Copy(s, s)
	if err != nil {
		s.CancelRead(0)
		s.CancelWrite(0)
		return
	}
	s.CloseWrite()
}

// endStream says something and ends the stream in the i-th way.
func endStream(s transport.Stream, i int) error {
	if _, err := s.Write([]byte("0123456789")); err != nil {
		return err
	}
	var reset *transport.ResetError
	switch i % 3 {
	case 0: // FIN
		if err := s.CloseWrite(); err != nil {
			return err
		}
		got, err := io.ReadAll(s)
		if err == nil && string(got) != "0123456789" {
			err = errors.New("echo is " + string(got))
		}
		return err
	case 1: // RESET
		s.CancelWrite(1)
		if _, err := io.Copy(io.Discard, s); !errors.As(err, &reset) || !reset.Remote {
			return errors.Join(errors.New("want a reset in answer"), err)
		}
	default: // STOP_SENDING
		s.CancelRead(2)
		// The peer learns of it by its next write, and then ends its own
		// interest.
		for s.Context().Err() == nil {
			if _, err := s.Write([]byte("0123456789")); err != nil {
				break
			}
			select {
			case <-s.Context().Done():
			case <-time.After(time.Millisecond):
			}
		}
		<-s.Context().Done()
		s.CancelWrite(2)
		if cause := context.Cause(s.Context()); !errors.As(cause, &reset) || !reset.Remote {
			return errors.Join(errors.New("want the peer to stop"), cause)
		}
	}
	return nil
}
