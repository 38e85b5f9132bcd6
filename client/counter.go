package client

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// CounterAdd adds delta, which may be negative, to a counter and gives the
// sum. Counters live beside the cache's keys: one that was never written is
// 0, and a key of the same name is something else. They need a broker with
// storage ([ErrUnsupported]). A sum that does not fit 64 bits is refused and
// changes nothing.
//
// An add is sent once: when the answer is lost, the error is
// [ErrOutcomeUnknown], and adding again may count twice.
func (k *Cache) CounterAdd(ctx context.Context, key string, delta int64) (sum int64, err error) {
	call, err := k.call(opCounterAdd, key)
	if err != nil {
		return 0, err
	}
	err = k.send(ctx, call, &wire.CounterAdd{
		Tenant: k.c.cfg.tenant, Namespace: k.namespace, Cache: k.name,
		Key: call.key, Delta: delta, RequestID: call.id,
	})
	if err != nil {
		return 0, err
	}
	sum = call.counter
	k.c.calls.put(call)
	return sum, nil
}

// CounterGet reads a counter. ok is false when it was never written.
func (k *Cache) CounterGet(ctx context.Context, key string) (value int64, ok bool, err error) {
	call, err := k.call(opCounterGet, key)
	if err != nil {
		return 0, false, err
	}
	err = k.send(ctx, call, &wire.CounterGet{
		Tenant: k.c.cfg.tenant, Namespace: k.namespace, Cache: k.name,
		Key: call.key, RequestID: call.id,
	})
	if err != nil {
		return 0, false, err
	}
	value, ok = call.counter, call.ok
	k.c.calls.put(call)
	return value, ok, nil
}
