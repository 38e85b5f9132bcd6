package session

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/wire"
)

const (
	// maxConsumer is the longest name of a member, in bytes (wire 12.2).
	maxConsumer = 128
	// pollRecordBytes is what a record takes in an answer beside its payload at
	// most: a publisher with every byte escaped, and the numbers.
	pollRecordBytes = 6*wire.MaxPublisher + 256
)

// groupPoll starts a poll (wire 12.2). What can be refused at once is refused
// here, in turn; then the poll goes on by itself, and the requests behind it
// are served meanwhile: an ack does not wait for a poll that waits for records.
func (s *control) groupPoll(ctx context.Context, m *wire.GroupPoll) error {
	r, err := s.group(ctx, &m.GroupRef, mayConsume)
	if err != nil {
		return err
	}
	switch {
	case s.c.srv.draining.Load():
		return errDraining
	case m.MaxRecords == 0:
		return invalidRequest("max_records must be at least 1")
	}
	o := queue.PollOptions{
		MaxRecords: int(min(m.MaxRecords, wire.MaxPollRecords)), Wait: fromMillis(m.WaitMS), Visibility: fromMillis(m.VisibilityMS),
		Holder: tracker.Holder{Principal: s.principal.Subject, Connection: s.c.number}, Reclaim: m.Reclaim,
	}
	if name, named := m.Consumer.Get(); named {
		if err := validConsumer(name); err != nil {
			return err
		}
		o.Holder.Consumer = name
	} else if m.Reclaim {
		return invalidRequest("reclaim takes over the claims of a consumer: name it")
	}
	return s.polls.start(m, r, s.fitPoll(o))
}

func validConsumer(name string) error {
	if len(name) > maxConsumer {
		return invalidRequest(fmt.Sprintf("invalid consumer: longer than %d bytes", maxConsumer))
	}
	if err := wire.ValidateName("consumer", name); err != nil {
		return invalidRequest(err.Error())
	}
	return nil
}

// fitPoll bounds a poll so that its answer fits a frame: half of the frame for
// the payloads as base64, half for what stands beside them.
func (s *control) fitPoll(o queue.PollOptions) queue.PollOptions {
	half := s.c.srv.cfg.MaxFrameBytes / 2
	o.MaxRecords = max(1, min(o.MaxRecords, half/pollRecordBytes))
	o.MaxBytes = max(1, min(wire.MaxPollBytes, half/4*3))
	return o
}

// fitsPoll says whether a record alone fits the answer to a poll as base64.
func (s *control) fitsPoll(payload int) bool {
	return inAnswer(payload)+pollRecordBytes+256 <= s.c.srv.cfg.MaxFrameBytes
}

// pollAnswer is the answer with the records that fit one, told as this client
// reads them. A record that fits none is left out, with its claim standing, so
// that others are handed out meanwhile and nobody gets it in vain again before
// the claim lapses; after the last attempt it is a dead letter. tooLarge is the
// first of those.
func (s *control) pollAnswer(requestID uint64, records []queue.Record) (answer *wire.GroupRecords, tooLarge *queue.Record) {
	answer = &wire.GroupRecords{RequestID: requestID, Records: make([]wire.GroupRecord, 0, len(records))}
	for i := range records {
		r := &records[i]
		if !s.fitsPoll(len(r.Payload)) {
			if tooLarge == nil {
				tooLarge = r
			}
			continue
		}
		to := wire.GroupRecord{Offset: r.Offset, Payload: r.Payload, Attempts: r.Attempts}
		if s.offer.Has(wire.FeatureGroupSkipped) {
			to.SkippedBefore = r.SkippedBefore
		}
		if s.offer.Has(wire.FeatureGroupPublisher) && r.Publisher != "" {
			to.Publisher = wire.Some(r.Publisher)
		}
		if s.offer.Has(wire.FeatureRecordTimestamps) {
			to.TimestampMicros = wire.Some(r.TimestampMicros)
		}
		answer.Records = append(answer.Records, to)
	}
	return answer, tooLarge
}

// recordTooLarge refuses a poll whose only record fits no answer. Another poll
// is given the records behind it.
func recordTooLarge(r *queue.Record) *refusal {
	refused := refuse(wire.CodeLimitExceeded, fmt.Sprintf(
		"the record at offset %d has %d bytes, too many for the answer to a poll; subscribe to read it, then ack or dead-letter it by its offset; polls go on with other records",
		r.Offset, len(r.Payload)))
	refused.Class = wire.Retry
	return refused
}
