package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/wire"
)

// groupAnswer serves the requests of groups that are answered where they are
// read (wire 12.2). Those that change something are durable when they return.
func (s *control) groupAnswer(ctx context.Context, m wire.Message) (wire.Message, error) {
	switch m := m.(type) {
	case *wire.GroupDescribe:
		return s.groupDescribe(ctx, m)
	case *wire.GroupDeadLetters:
		return s.groupDeadLetters(ctx, m)
	case *wire.GroupDeadLetter:
		return s.groupWrite(ctx, &m.GroupRef, mayConsume, m.RequestID, func(ctx context.Context, r queue.Ref) error {
			return s.c.srv.broker.Groups().DeadLetter(ctx, r, m.Offset)
		})
	case *wire.GroupDiscard:
		return s.groupWrite(ctx, &m.GroupRef, mayManage, m.RequestID, func(ctx context.Context, r queue.Ref) error {
			return s.c.srv.broker.Groups().Discard(ctx, r, m.Offset)
		})
	case *wire.GroupRedrive:
		return s.groupWrite(ctx, &m.GroupRef, mayManage, m.RequestID, func(ctx context.Context, r queue.Ref) error {
			return s.c.srv.broker.Groups().Redrive(ctx, r, m.Offset)
		})
	case *wire.GroupSeek:
		return s.groupSeek(ctx, m)
	case *wire.GroupDelete:
		return s.groupDelete(ctx, m)
	}
	return nil, invalidRequest("unexpected message type")
}

// groupCall finds a group and runs a request of it that waits for the log.
// What has gathered leaves before; a log that does not answer in time ends the
// wait.
func (s *control) groupCall(ctx context.Context, name *wire.GroupRef, right groupRight, call func(context.Context, queue.Ref) error) error {
	r, err := s.group(ctx, name, right)
	if err != nil {
		return err
	}
	_ = s.out.flush() // a stream that has ended fails the next read
	defer s.out.beginRound()
	ctx, cancel := context.WithTimeoutCause(ctx, s.c.srv.cfg.AckWait, errUnconfirmed)
	defer cancel()
	err = call(ctx, r.ref)
	if errors.Is(err, context.DeadlineExceeded) {
		return errUnconfirmed
	}
	return err
}

// groupWrite is groupCall for what is answered cache_ok.
func (s *control) groupWrite(ctx context.Context, name *wire.GroupRef, right groupRight, requestID uint64, call func(context.Context, queue.Ref) error) (wire.Message, error) {
	if err := s.groupCall(ctx, name, right, call); err != nil {
		return nil, err
	}
	return &wire.CacheOK{RequestID: requestID}, nil
}

// groupSeek moves a group, or makes one where it is to begin.
func (s *control) groupSeek(ctx context.Context, m *wire.GroupSeek) (wire.Message, error) {
	answer := &wire.GroupPosition{RequestID: m.RequestID}
	err := s.groupCall(ctx, &m.GroupRef, mayManage, func(ctx context.Context, r queue.Ref) error {
		moved, err := s.c.srv.broker.Groups().Seek(ctx, r, positionOf(m.Start), m.IfNew)
		answer.Offset, answer.Moved = moved.Offset, moved.Moved
		return err
	})
	return answer, err
}

func positionOf(start wire.Start) queue.Position {
	switch start.Kind {
	case wire.StartEarliest:
		return queue.Position{Kind: queue.Earliest}
	case wire.StartLatest:
		return queue.Position{Kind: queue.Latest}
	default:
		return queue.Position{Kind: queue.At, Offset: start.Offset}
	}
}

func (s *control) groupDelete(ctx context.Context, m *wire.GroupDelete) (wire.Message, error) {
	answer := &wire.GroupDeleted{RequestID: m.RequestID}
	err := s.groupCall(ctx, &m.GroupRef, mayManage, func(ctx context.Context, r queue.Ref) (err error) {
		answer.Existed, err = s.c.srv.broker.Groups().Delete(ctx, r)
		return err
	})
	return answer, err
}

// groupDeadLetters lists the dead letters. A list that fits no frame is not
// cut: one that ends early would be taken for the whole.
func (s *control) groupDeadLetters(ctx context.Context, m *wire.GroupDeadLetters) (wire.Message, error) {
	answer := &wire.GroupDeadLetterList{RequestID: m.RequestID}
	err := s.groupCall(ctx, &m.GroupRef, mayConsume, func(ctx context.Context, r queue.Ref) (err error) {
		answer.Offsets, err = s.c.srv.broker.Groups().DeadLetters(ctx, r)
		return err
	})
	if err != nil {
		return nil, retried(err)
	}
	if n := len(answer.Offsets); n > 0 {
		first, last := answer.Offsets[0], answer.Offsets[n-1]
		if n*(len(strconv.FormatUint(last, 10))+1)+1024 > s.c.srv.cfg.MaxFrameBytes {
			return nil, refuse(wire.CodeLimitExceeded,
				fmt.Sprintf("%d dead letters are too many for one answer; they lie between offsets %d and %d: discard or redrive some of them by offset, or delete the group", n, first, last))
		}
	}
	return answer, nil
}
