package recorder

import (
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// Facts are what a client's handshake says about it, and how it behaves on an
// idle connection.
type Facts struct {
	// OfferedALPN is the client's list, nil when it sent no such extension.
	OfferedALPN []string
	ServerName  string
	// Params are the client's transport parameters.
	Params Params
	// Pings are the times, since the first packet, at which the client sent
	// a PING frame.
	Pings []time.Duration
}

// Params are the QUIC transport parameters of a client; sizes in bytes.
type Params struct {
	MaxIdleTimeout         time.Duration
	MaxUDPPayload          int64
	MaxAckDelay            time.Duration
	ConnWindow             int64
	BidiLocalWindow        int64
	BidiRemoteWindow       int64
	UniWindow              int64
	MaxBidiStreams         int64
	MaxUniStreams          int64
	MaxDatagram            int64
	ActiveConnectionIDs    uint64
	DisableActiveMigration bool
}

// Facts returns what is known of the connection so far.
func (c *Conn) Facts() Facts {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	f := c.facts
	f.OfferedALPN = append([]string(nil), f.OfferedALPN...)
	f.Pings = append([]time.Duration(nil), f.Pings...)
	return f
}

// paramTrace picks the client's transport parameters and pings out of the
// event stream quic-go keeps for qlog.
type paramTrace struct{ conn *Conn }

func (t paramTrace) AddProducer() qlogwriter.Recorder { return t }
func (t paramTrace) SupportsSchemas(string) bool      { return false }
func (t paramTrace) Close() error                     { return nil }

func (t paramTrace) RecordEvent(ev qlogwriter.Event) {
	s := t.conn.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch ev := ev.(type) {
	case qlog.ParametersSet:
		if ev.Initiator != qlog.InitiatorRemote {
			return
		}
		t.conn.facts.Params = Params{
			MaxIdleTimeout:         ev.MaxIdleTimeout,
			MaxUDPPayload:          int64(ev.MaxUDPPayloadSize),
			MaxAckDelay:            ev.MaxAckDelay,
			ConnWindow:             int64(ev.InitialMaxData),
			BidiLocalWindow:        int64(ev.InitialMaxStreamDataBidiLocal),
			BidiRemoteWindow:       int64(ev.InitialMaxStreamDataBidiRemote),
			UniWindow:              int64(ev.InitialMaxStreamDataUni),
			MaxBidiStreams:         ev.InitialMaxStreamsBidi,
			MaxUniStreams:          ev.InitialMaxStreamsUni,
			MaxDatagram:            int64(ev.MaxDatagramFrameSize),
			ActiveConnectionIDs:    ev.ActiveConnectionIDLimit,
			DisableActiveMigration: ev.DisableActiveMigration,
		}
	case qlog.PacketReceived:
		if t.conn.first.IsZero() {
			t.conn.first = time.Now()
		}
		for _, f := range ev.Frames {
			if _, ok := f.Frame.(*qlog.PingFrame); ok {
				t.conn.facts.Pings = append(t.conn.facts.Pings, time.Since(t.conn.first))
			}
		}
	}
}

// QUIC is the connection below, for what a test must do to it directly.
func (c *Conn) QUIC() *quic.Conn {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.quic
}
