package client

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// A StateChange is one keyed change of a [Client.Commit]: [SetState] or
// [ClearState] make one.
type StateChange struct{ w wire.StateChange }

// SetState gives a key of the entity's state a value.
func SetState(key string, value []byte) StateChange {
	return StateChange{wire.StateChange{Key: []byte(key), Value: value}}
}

// ClearState removes a key from the entity's state.
func ClearState(key string) StateChange {
	return StateChange{wire.StateChange{Delete: true, Key: []byte(key)}}
}

// A CommitOption configures a [Client.Commit].
type CommitOption interface {
	applyCommit(commitOptions) commitOptions
}

type commitOptions struct {
	namespace string
	offset    uint64
	offsetSet bool
}

func (n NamespaceOption) applyCommit(o commitOptions) commitOptions {
	o.namespace = string(n)
	return o
}

type expectOffset uint64

func (e expectOffset) applyCommit(o commitOptions) commitOptions {
	o.offset, o.offsetSet = uint64(e), true
	return o
}

// ExpectOffset lets a commit happen only if its event gets this offset; else
// it fails with an [*OffsetMismatchError].
func ExpectOffset(offset uint64) CommitOption { return expectOffset(offset) }

// Commit stores one event and changes to the state of an entity in one step:
// both or neither (wire 13). The entity names the shard, as a publish key
// does, and has its own keys. Readers of the stream see the event; the state
// is for [Client.StateGet].
//
// The ack's offset is that of the event and the version of every key
// changed. A commit is never sent again once it may have happened: when the
// answer is lost, the error is [ErrOutcomeUnknown]. It needs a stream with a
// log.
func (c *Client) Commit(ctx context.Context, stream string, entity, event []byte, changes []StateChange, opts ...CommitOption) (Ack, error) {
	const op = "commit"
	var o commitOptions
	for _, opt := range opts {
		o = opt.applyCommit(o)
	}
	rt, err := c.route(o.namespace, stream)
	if err != nil {
		return Ack{}, err
	}
	if err := wire.ValidateRoutingKey(entity); err != nil {
		return Ack{}, nameError("entity", string(entity), err)
	}
	m := &wire.Commit{
		Tenant: c.cfg.tenant, Namespace: rt.namespace, Stream: rt.stream,
		EntityKey: entity, Event: event, RequestID: c.ids.Add(1),
	}
	for _, change := range changes {
		if err := wire.ValidateKey(change.w.Key); err != nil {
			return Ack{}, nameError("state key", string(change.w.Key), err)
		}
		m.Changes = append(m.Changes, change.w)
	}
	need := need{wire.FeatureAtomicCommit, "ATOMIC_COMMIT"}
	if o.offsetSet {
		m.ExpectedOffset = wire.Some(o.offset)
		need = needConditional()
		need.feature |= wire.FeatureAtomicCommit
	}
	shard, err := rt.shardOf(ctx, entity, true)
	if err != nil {
		return Ack{}, err
	}
	answer, err := c.writeAtOwner(ctx, op, need, m)
	if err != nil {
		return Ack{}, err
	}
	switch a := answer.(type) {
	case *wire.CommitOK:
		return Ack{Offset: a.Offset, HasOffset: true, Shard: shard}, nil
	case *wire.PublishRefused:
		return Ack{}, conditionRefused(op, o.offset, a)
	}
	return Ack{}, unexpectedAnswer(op, "", answer)
}

// A StateValue is one key of an entity's state.
type StateValue struct {
	// Value is what it holds, if Found.
	Value []byte
	Found bool
	// Version is the offset of the commit that wrote it, if Found.
	Version uint64
	// AsOf is the offset of the last commit that the answer reflects, if
	// HasAsOf: without commits there is none.
	AsOf    uint64
	HasAsOf bool
}

// StateGet reads one key of an entity's state, written by [Client.Commit]. A
// key that was never written, or was removed, is no error.
func (c *Client) StateGet(ctx context.Context, stream string, entity []byte, key string, opts ...LookupOption) (StateValue, error) {
	const op = "state get"
	name, err := c.lookupName("stream", stream, opts)
	if err != nil {
		return StateValue{}, err
	}
	if err := wire.ValidateRoutingKey(entity); err != nil {
		return StateValue{}, nameError("entity", string(entity), err)
	}
	if err := wire.ValidateKey([]byte(key)); err != nil {
		return StateValue{}, nameError("state key", key, err)
	}
	answer, err := c.readAtOwner(ctx, op, need{wire.FeatureAtomicCommit, "ATOMIC_COMMIT"}, &wire.StateGet{
		Tenant: c.cfg.tenant, Namespace: name.namespace, Stream: name.stream,
		EntityKey: entity, Key: []byte(key), RequestID: c.ids.Add(1),
	})
	if err != nil {
		return StateValue{}, err
	}
	a, ok := answer.(*wire.StateValue)
	if !ok {
		return StateValue{}, unexpectedAnswer(op, "", answer)
	}
	var v StateValue
	v.Value, v.Found = a.Value.Get()
	v.Version = a.Version.Or(0)
	v.AsOf, v.HasAsOf = a.AsOf.Get()
	return v, nil
}
