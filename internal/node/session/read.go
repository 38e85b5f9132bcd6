package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// readWait bounds how long a read waits for a log that is being opened.
const readWait = 5 * time.Second

// awaitReady waits until what a request is for can be used. Answers that have
// gathered leave before.
func (s *control) awaitReady(ctx context.Context, ready func(context.Context) error) error {
	if ready(s.c.srv.noWait) == nil {
		return nil
	}
	_ = s.out.flush() // a stream that has ended fails the next read
	defer s.out.beginRound()
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	return ready(ctx)
}

// readableStream authorises and resolves what a request reads: for
// subscriptions, reads by offset and time, and state alike.
func (s *control) readableStream(tenant, namespace, name string) (*stream.Stream, error) {
	if ended := s.rights.ended(); ended != nil {
		return nil, ended
	}
	if tenant != s.principal.Tenant {
		return nil, errTenant
	}
	if err := validNames("stream", namespace, name); err != nil {
		return nil, err
	}
	if !s.principal.Grants.CanSubscribe(namespace, name) {
		return nil, errForbidden
	}
	return s.c.srv.stream(tenant, namespace, name)
}

// readableShard also waits until the shard serves.
func (s *control) readableShard(ctx context.Context, tenant, namespace, name string, shard uint32) (*stream.Shard, error) {
	st, err := s.readableStream(tenant, namespace, name)
	if err != nil {
		return nil, err
	}
	if shard >= st.Shards() {
		return nil, invalidRequest(fmt.Sprintf("shard %d does not exist: the stream has %d", shard, st.Shards()))
	}
	sh := st.Shard(shard)
	return sh, s.awaitReady(ctx, sh.Ready)
}

// streamRead answers one page of committed records (wire 10).
func (s *control) streamRead(ctx context.Context, m *wire.StreamRead) verdict {
	s.awaitTurn(ctx)
	sh, err := s.readableShard(ctx, m.Tenant, m.Namespace, m.Stream, m.Shard)
	if err != nil {
		return s.refuseRead(err)
	}
	most := uint64(wire.MaxReadBytes)
	if m.MaxBytes > 0 {
		most = min(most, m.MaxBytes)
	}
	records := s.c.srv.cfg.MaxReadRecords
	if m.MaxRecords > 0 {
		records = min(records, int(m.MaxRecords))
	}
	// What the peer is owed leaves before more is read for it.
	_ = s.out.flush()
	defer s.out.beginRound()
	held := inAnswer(int(most))
	if err := s.c.answers.reserve(ctx, held); err != nil {
		return finish // the connection has ended
	}
	defer func() { s.c.answers.release(held) }()
	page, err := sh.Read(ctx, stream.ReadOptions{From: m.From, End: m.End.Value, MaxRecords: records, MaxBytes: int(most)})
	if err != nil {
		return s.refuseRead(err)
	}
	if m.End.Set && m.End.Value <= m.From { // nothing is asked for; the core takes an end of 0 for none
		page = stream.Records{Next: m.From}
	}
	size := answerSize(page)
	s.c.answers.resize(held, size)
	held = size
	answer := &wire.StreamRecords{Records: make([]wire.StreamRecord, len(page.Items)), NextOffset: page.Next, RequestID: m.RequestID}
	for i, r := range page.Items {
		if !fitsAnswer(len(r.Payload), s.c.srv.cfg.MaxFrameBytes) {
			return s.refuseRequest(refuse(wire.CodeLimitExceeded,
				fmt.Sprintf("the record at offset %d has %d bytes, too many for this answer; subscribe to read it", r.Offset, len(r.Payload))))
		}
		answer.Records[i] = wire.StreamRecord{Offset: r.Offset, Payload: r.Payload, TimestampMicros: r.TimestampMicros}
		if r.Publisher != "" {
			answer.Records[i].Publisher = wire.Some(r.Publisher)
		}
	}
	s.answer(answer)
	_ = s.out.flush()
	return goOn
}

// answerSize is what the payloads of a page take in its answer.
func answerSize(page stream.Records) (n int) {
	for i := range page.Items {
		n += inAnswer(len(page.Items[i].Payload))
	}
	return n
}

// fitsAnswer says whether a record alone still fits a frame as base64.
func fitsAnswer(payload, frame int) bool { return payload/3*4+1024 <= frame }

// offsetForTime answers the first offset not older than a time (wire 7.6).
func (s *control) offsetForTime(ctx context.Context, m *wire.OffsetForTime) verdict {
	s.awaitTurn(ctx)
	sh, err := s.readableShard(ctx, m.Tenant, m.Namespace, m.Stream, m.Shard)
	if err != nil {
		return s.refuseRead(err)
	}
	offset, found, err := sh.OffsetForTime(ctx, m.AtMicros)
	if err != nil {
		return s.refuseRead(err)
	}
	answer := &wire.OffsetValue{RequestID: m.RequestID}
	if found {
		answer.Offset = wire.Some(offset)
	}
	s.answer(answer)
	return goOn
}

// refuseRead answers a position that cannot be served with its own message
// and everything else with `error`. A read that failed changed nothing, so a
// client may send it again.
func (s *control) refuseRead(err error) verdict {
	var cursor *stream.CursorError
	if errors.As(err, &cursor) {
		s.answer(cursorError(cursor))
		return goOn
	}
	r := asRefusal(err)
	if r.Class == wire.OutcomeUnknown {
		again := *r
		again.Class = wire.Retry
		r = &again
	}
	return s.refuseRequest(r)
}
