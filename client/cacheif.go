package client

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// A Condition is what the present entry of a key must be for a conditional
// write to happen.
type Condition struct{ w wire.Condition }

// IfAbsent holds when the key has no live entry.
func IfAbsent() Condition { return Condition{wire.Condition{Absent: true}} }

// IfVersion holds when the key has a live entry of this version.
func IfVersion(version uint64) Condition { return Condition{wire.Condition{Version: version}} }

// A ConditionResult tells how a conditional write went. A condition that did
// not hold is a result, not an error.
type ConditionResult struct {
	// Applied says that the condition held and the write happened.
	Applied bool
	// Version is, if HasVersion, the new entry's when applied and the
	// present entry's otherwise. Without a live entry there is none.
	Version    uint64
	HasVersion bool
}

// PutIf writes a key if cond holds, in one step. It is never sent again once
// it may have been applied: when the answer is lost, the error is
// [ErrOutcomeUnknown].
func (k *Cache) PutIf(ctx context.Context, key string, value []byte, cond Condition, opts ...PutOption) (ConditionResult, error) {
	ttl, err := ttlOf(opts)
	if err != nil {
		return ConditionResult{}, err
	}
	call, err := k.call(opPutIf, key)
	if err != nil {
		return ConditionResult{}, err
	}
	return k.conditional(ctx, call, &wire.CachePutIf{
		Tenant: k.c.cfg.tenant, Namespace: k.namespace, Cache: k.name,
		Key: call.key, Value: value, TTLMS: ttl, Condition: cond.w, RequestID: call.id,
	})
}

// DeleteIf removes a key if it has a live entry of this version, in one
// step. A lost answer is what it is for [Cache.PutIf].
func (k *Cache) DeleteIf(ctx context.Context, key string, version uint64) (ConditionResult, error) {
	call, err := k.call(opDeleteIf, key)
	if err != nil {
		return ConditionResult{}, err
	}
	return k.conditional(ctx, call, &wire.CacheDeleteIf{
		Tenant: k.c.cfg.tenant, Namespace: k.namespace, Cache: k.name,
		Key: call.key, Version: version, RequestID: call.id,
	})
}

func (k *Cache) conditional(ctx context.Context, call *cacheCall, m wire.Message) (ConditionResult, error) {
	if err := k.send(ctx, call, m); err != nil {
		return ConditionResult{}, err
	}
	res := ConditionResult{Applied: call.ok, Version: call.version, HasVersion: call.hasVersion}
	k.c.calls.put(call)
	return res, nil
}
