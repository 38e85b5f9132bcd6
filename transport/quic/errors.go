package quic

import (
	"errors"

	quicgo "github.com/quic-go/quic-go"

	"github.com/felixlog/felix/transport"
)

// A carrierError names a carrier failure by one of transport's sentinels and
// keeps the carrier's own words.
type carrierError struct{ sentinel, err error }

func (e *carrierError) Error() string   { return e.err.Error() }
func (e *carrierError) Unwrap() []error { return []error{e.sentinel, e.err} }

// mapError turns an error of quic-go into one of package transport. Context
// errors, io.EOF and deadline errors pass as they are.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	switch err {
	case quicgo.ErrWouldBlock:
		return transport.ErrWouldBlock
	case quicgo.ErrStreamClosed:
		return transport.ErrWriteClosed
	}
	switch e := err.(type) {
	case *quicgo.StreamError:
		return &transport.ResetError{Code: uint64(e.ErrorCode), Remote: e.Remote}
	case *quicgo.ApplicationError:
		return &transport.CloseError{
			Code:        uint64(e.ErrorCode),
			Reason:      e.ErrorMessage,
			Remote:      e.Remote,
			Application: true,
			Err:         err,
		}
	case *quicgo.TransportError:
		c := &transport.CloseError{Code: uint64(e.ErrorCode), Remote: e.Remote, Err: err}
		if e.ErrorCode == quicgo.ConnectionRefused {
			c.Err = &carrierError{transport.ErrRefused, err}
		}
		return c
	case *quicgo.IdleTimeoutError:
		return &transport.CloseError{Err: &carrierError{transport.ErrIdleTimeout, err}}
	case *quicgo.HandshakeTimeoutError:
		return &transport.CloseError{Err: &carrierError{transport.ErrHandshakeTimeout, err}}
	case *quicgo.StatelessResetError:
		return &transport.CloseError{Remote: true, Err: err}
	case *quicgo.VersionNegotiationError:
		return &transport.CloseError{Err: err}
	}
	if errors.Is(err, quicgo.ErrTransportClosed) {
		return &transport.CloseError{Err: err}
	}
	return err
}

// mapHandshakeError is mapError for a dial: to quic-go a peer that never
// answers is idle.
func mapHandshakeError(err error) error {
	if _, ok := err.(*quicgo.IdleTimeoutError); ok {
		return &transport.CloseError{Err: &carrierError{transport.ErrHandshakeTimeout, err}}
	}
	return mapError(err)
}
