package client

import (
	"context"
	"iter"
	"time"

	"github.com/felixlog/felix/wire"
)

// A Range is a part of one shard to read.
type Range struct {
	// Shard is the shard.
	Shard uint32
	// From is the offset of the first record wanted.
	From uint64
	// End is the first offset not wanted; zero for no end.
	End uint64
	// MaxRecords and MaxBytes bound one page, in records and bytes of
	// payload; zero for the broker's own bounds, which hold anyway.
	MaxRecords uint32
	MaxBytes   uint64
}

// A Page is what one [Client.Read] gives.
type Page struct {
	// Records are the records, in order; publisher and time are set where
	// the broker knows them.
	Records []Event
	// Next is the offset to read on from. A page without records whose Next
	// is where it was asked to begin says that nothing is there yet.
	Next uint64
}

// Read reads one page of a stream without subscribing: committed records
// from an offset on. It needs a stream with a log. An offset past the end,
// or no longer held, is a [*CursorError].
func (c *Client) Read(ctx context.Context, stream string, r Range, opts ...LookupOption) (Page, error) {
	const op = "read"
	name, err := c.lookupName("stream", stream, opts)
	if err != nil {
		return Page{}, err
	}
	m := &wire.StreamRead{
		Tenant: c.cfg.tenant, Namespace: name.namespace, Stream: name.stream, Shard: r.Shard,
		From: r.From, MaxRecords: r.MaxRecords, MaxBytes: r.MaxBytes, RequestID: c.ids.Add(1),
	}
	if r.End > 0 {
		m.End = wire.Some(r.End)
	}
	answer, err := c.readAtOwner(ctx, op, need{wire.FeatureStreamRead, "STREAM_READ"}, m)
	if err != nil {
		return Page{}, err
	}
	switch a := answer.(type) {
	case *wire.StreamRecords:
		return pageOf(a, r.Shard), nil
	case *wire.SubscribeCursorError:
		return Page{}, &CursorError{Reason: a.Reason.String(), Requested: a.Requested, Available: a.Available}
	}
	return Page{}, unexpectedAnswer(op, "", answer)
}

func pageOf(m *wire.StreamRecords, shard uint32) Page {
	page := Page{Records: make([]Event, 0, len(m.Records)), Next: m.NextOffset}
	for _, r := range m.Records {
		ev := Event{Payload: r.Payload, Offset: r.Offset, HasOffset: true, Shard: shard, Publisher: r.Publisher.Or("")}
		if r.TimestampMicros != 0 {
			ev.Time = time.UnixMicro(int64(r.TimestampMicros))
		}
		page.Records = append(page.Records, ev)
	}
	return page
}

// Records ranges over a part of a stream, page by page: up to the range's
// end, or else up to where the shard ends when the last page is read. An
// error is yielded with a zero Event and is the last.
func (c *Client) Records(ctx context.Context, stream string, r Range, opts ...LookupOption) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for r.End == 0 || r.From < r.End {
			page, err := c.Read(ctx, stream, r, opts...)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, ev := range page.Records {
				if !yield(ev, nil) {
					return
				}
			}
			if page.Next <= r.From {
				return
			}
			r.From = page.Next
		}
	}
}

// OffsetForTime finds the first record of a shard that was appended at t or
// later, for [From] or [Range.From]. ok is false when there is none yet. It
// needs a stream with a log.
func (c *Client) OffsetForTime(ctx context.Context, stream string, shard uint32, t time.Time, opts ...LookupOption) (offset uint64, ok bool, err error) {
	const op = "offset for time"
	name, err := c.lookupName("stream", stream, opts)
	if err != nil {
		return 0, false, err
	}
	answer, err := c.readAtOwner(ctx, op, need{wire.FeatureRecordTimestamps, "RECORD_TIMESTAMPS"}, &wire.OffsetForTime{
		Tenant: c.cfg.tenant, Namespace: name.namespace, Stream: name.stream, Shard: shard,
		AtMicros: uint64(max(t.UnixMicro(), 0)), RequestID: c.ids.Add(1),
	})
	if err != nil {
		return 0, false, err
	}
	a, fits := answer.(*wire.OffsetValue)
	if !fits {
		return 0, false, unexpectedAnswer(op, "", answer)
	}
	offset, ok = a.Offset.Get()
	return offset, ok, nil
}
