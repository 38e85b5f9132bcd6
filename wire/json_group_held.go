package wire

// The states of a [GroupHeld]. It is an open set: a client shows a word that it
// does not know as it stands.
const (
	GroupClaimed       = "claimed"        // handed out; the claim stands until UntilMicros
	GroupDelayed       = "delayed"        // handed back with a delay, which ends at UntilMicros
	GroupOwed          = "owed"           // waits to be handed out again
	GroupDeadLettering = "dead_lettering" // its dead letter is being written
	GroupNotHandedOut  = "not_handed_out" // of First only: nobody has polled it yet
	GroupAtTail        = "at_tail"        // of First only: everything is finished
)

// GroupHeld is one record that a group has not finished, and who has it: part
// of group_info, ours.
type GroupHeld struct {
	Offset      uint64
	State       string
	Attempts    uint32           // deliveries so far
	Consumer    Optional[string] // of the poll that claimed it, if it named one
	Principal   Optional[string] // whose token polled it
	Connection  uint64           // the broker's number of the connection; 0: none
	SinceMicros Optional[uint64] // when it was handed out or back, Unix microseconds
	UntilMicros Optional[uint64] // when the claim or the delay ends, Unix microseconds
	Reserved    bool             // set aside for the member that reclaimed it
	Redriven    bool             // put back in play from the dead letters
}

func (m *GroupHeld) appendFields(o object) object {
	o = o.u64("offset", m.Offset)
	o = o.text("state", m.State)
	o = o.zeroU32("attempts", m.Attempts)
	o = o.optText("consumer", m.Consumer)
	o = o.optText("principal", m.Principal)
	o = o.zeroU64("connection", m.Connection)
	o = o.optU64("since_micros", m.SinceMicros)
	o = o.optU64("until_micros", m.UntilMicros)
	o = o.zeroBoolean("reserved", m.Reserved)
	return o.zeroBoolean("redriven", m.Redriven)
}

func (m *GroupHeld) readFields(f *fields) {
	f.u64("offset", &m.Offset)
	f.text("state", &m.State)
	f.zeroU32("attempts", &m.Attempts)
	f.optText("consumer", &m.Consumer)
	f.optText("principal", &m.Principal)
	f.zeroU64("connection", &m.Connection)
	f.optU64("since_micros", &m.SinceMicros)
	f.optU64("until_micros", &m.UntilMicros)
	f.zeroBoolean("reserved", &m.Reserved)
	f.zeroBoolean("redriven", &m.Redriven)
}
