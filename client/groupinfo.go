package client

import (
	"time"

	"github.com/felixlog/felix/wire"
)

// A GroupPosition is where a group stands after [Group.Create] or
// [Group.Seek].
type GroupPosition struct {
	// Offset is that of the next record, for a group that was there before:
	// of the first that is not finished.
	Offset uint64
	// Moved says that the call set the position.
	Moved bool
}

// A GroupInfo says where a group stands on one shard. Fields marked so are
// zero where the broker does not tell.
type GroupInfo struct {
	// Committed is the cursor, if HasCommitted: everything below is finished.
	Committed    uint64
	HasCommitted bool
	// Tail is the offset of the next record to be published.
	Tail uint64
	// InFlight counts the records claimed or handed back with a delay, Owed
	// those that lapsed or were handed back and wait for a poll.
	InFlight, Owed uint64
	// DeadLetters counts the records given up.
	DeadLetters uint64

	// HighWater is the first offset that was never handed out, if
	// HasHighWater.
	HighWater    uint64
	HasHighWater bool
	// Trimmed counts the records that retention took before they were
	// finished, if the broker tells.
	Trimmed uint64
	// MaxAttempts is after how many deliveries a record is given up, if the
	// broker tells.
	MaxAttempts uint32
	// First is the record that holds the cursor, and why; nil if the broker
	// does not tell.
	First *GroupHeld
	// NextLapse is when the next claim lapses or the next delay is over; zero
	// when there is none, or the broker does not tell.
	NextLapse time.Time
	// Held are the records asked for with [DescribeHeld], ascending. More
	// says that others follow, from HeldNext on.
	Held     []GroupHeld
	HeldNext uint64
	More     bool
}

// Lag is the number of records published and not below the cursor.
func (i *GroupInfo) Lag() uint64 { return i.Tail - min(i.Committed, i.Tail) }

// A HeldState is why a record is not finished.
type HeldState string

// The states. Brokers may come to send others.
const (
	// HeldClaimed: a worker has it.
	HeldClaimed HeldState = "claimed"
	// HeldDelayed: it was handed back with a delay that is not over.
	HeldDelayed HeldState = "delayed"
	// HeldOwed: its claim lapsed or it was handed back; the next poll has it.
	HeldOwed HeldState = "owed"
	// HeldDeadLettering: it is being written to the dead letters.
	HeldDeadLettering HeldState = "dead_lettering"
	// HeldNotHandedOut: nobody has polled it yet.
	HeldNotHandedOut HeldState = "not_handed_out"
	// HeldAtTail: there is no such record yet; the group has finished all.
	HeldAtTail HeldState = "at_tail"
)

// A GroupHeld is one record in play, and who holds it.
type GroupHeld struct {
	Offset   uint64
	State    HeldState
	Attempts uint32
	// Consumer, Principal and Connection are those of the holder, where one
	// is known. An anonymous consumer has no name.
	Consumer, Principal string
	Connection          uint64
	// Since is when the state began, Until when it ends by itself; zero where
	// there is no such time.
	Since, Until time.Time
	// Reserved says that it waits for its holder to poll again (see
	// [PollReclaim]), Redriven that it was in the dead letters.
	Reserved, Redriven bool
}

func groupInfo(m *wire.GroupInfo) GroupInfo {
	i := GroupInfo{
		Tail: m.Tail, InFlight: m.InFlight, Owed: m.Owed, DeadLetters: m.DeadLetters,
		Trimmed: m.Trimmed, MaxAttempts: m.MaxAttempts,
		NextLapse: moment(m.NextLapseMicros),
	}
	i.Committed, i.HasCommitted = m.Committed.Get()
	i.HighWater, i.HasHighWater = m.HighWater.Get()
	i.HeldNext, i.More = m.HeldNext.Get()
	if first, ok := m.First.Get(); ok {
		held := groupHeld(first)
		i.First = &held
	}
	for _, h := range m.Held {
		i.Held = append(i.Held, groupHeld(h))
	}
	return i
}

func groupHeld(m wire.GroupHeld) GroupHeld {
	return GroupHeld{
		Offset: m.Offset, State: HeldState(m.State), Attempts: m.Attempts,
		Consumer: m.Consumer.Or(""), Principal: m.Principal.Or(""), Connection: m.Connection,
		Since: moment(m.SinceMicros), Until: moment(m.UntilMicros),
		Reserved: m.Reserved, Redriven: m.Redriven,
	}
}

// moment is a time in Unix microseconds; zero for none.
func moment(micros wire.Optional[uint64]) time.Time {
	if n, ok := micros.Get(); ok {
		return time.UnixMicro(int64(n))
	}
	return time.Time{}
}
