package queue

import (
	"context"
	"errors"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
)

// fetched is what became of claims when their records were read.
type fetched struct {
	records []Record
	// missing are offsets that hold no record.
	missing []uint64
	// back are claims that were not read.
	back []tracker.Claim
	// base, if not 0, is what retention has moved on to.
	base uint64
	// err is why reading ended, if it was not for size.
	err error
}

// fetch reads the records of claims, which ascend: each run of offsets with one
// read, up to maxBytes of payload.
func fetch(ctx context.Context, src Source, claims []tracker.Claim, maxBytes int) fetched {
	f := fetched{records: make([]Record, 0, len(claims))}
	for size := 0; len(claims) > 0; {
		if size >= maxBytes {
			f.back = append(f.back, claims...)
			return f
		}
		run := runOf(claims)
		from, end := claims[0].Offset, claims[0].Offset+uint64(run)
		page, err := src.Read(ctx, stream.ReadOptions{From: from, End: end, MaxRecords: run, MaxBytes: maxBytes - size})
		if trimmed, ok := errors.AsType[*stream.CursorError](err); ok && trimmed.Reason == stream.TooOld && trimmed.Available > from {
			f.base = trimmed.Available
			for len(claims) > 0 && claims[0].Offset < f.base {
				claims = claims[1:]
			}
			continue
		}
		if err == nil && page.Next <= from {
			// It failed since, and serves what is durable.
			err = &EndsEarlyError{Offset: from}
		}
		if err != nil {
			f.back, f.err = append(f.back, claims...), err
			return f
		}
		for i := range page.Items {
			item := &page.Items[i]
			if size > 0 && size+len(item.Payload) > maxBytes {
				f.back = append(f.back, claims...)
				return f
			}
			size += len(item.Payload)
			for claims[0].Offset < item.Offset {
				f.missing = append(f.missing, claims[0].Offset)
				claims = claims[1:]
			}
			f.records = append(f.records, Record{Record: *item, claim: claims[0]})
			claims = claims[1:]
		}
		for len(claims) > 0 && claims[0].Offset < page.Next {
			f.missing = append(f.missing, claims[0].Offset)
			claims = claims[1:]
		}
	}
	return f
}

// runOf is how many claims at the front are of offsets that follow each other.
func runOf(claims []tracker.Claim) int {
	n := 1
	for n < len(claims) && claims[n].Offset == claims[n-1].Offset+1 {
		n++
	}
	return n
}
