package client

import (
	"context"
	"time"

	"github.com/felixlog/felix/wire"
)

// A Cache is a handle on one cache: keys to latest values. It is safe for
// concurrent use and costs nothing to make.
//
// Keys are UTF-8 of 1 to 65,535 bytes. Absent and empty are different: an
// empty value is a value.
type Cache struct {
	c         *Client
	namespace string
	name      string
	err       error // of its names
}

// Cache gives a handle on a cache. Nothing is sent; a name that cannot be is
// reported by the first call.
func (c *Client) Cache(name string, opts ...CacheOption) *Cache {
	o := cacheOptions{namespace: c.cfg.namespace}
	for _, opt := range opts {
		o = opt.applyCache(o)
	}
	k := &Cache{c: c, namespace: o.namespace, name: name}
	if k.err = checkName("namespace", k.namespace); k.err == nil {
		k.err = checkName("cache", k.name)
	}
	return k
}

// An Entry is a value with its version.
type Entry struct {
	Value []byte
	// Version is what conditional writes name, if HasVersion.
	Version    uint64
	HasVersion bool
}

// Get reads a key. ok is false when it is absent or has expired.
func (k *Cache) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	return k.AppendGet(ctx, nil, key)
}

// AppendGet is [Cache.Get] that appends the value to dst and returns the
// extended slice, dst itself when the key is absent.
func (k *Cache) AppendGet(ctx context.Context, dst []byte, key string) (value []byte, ok bool, err error) {
	call, err := k.read(ctx, opGet, key, dst)
	if err != nil {
		return dst, false, err
	}
	value, ok = call.value, call.ok
	k.c.calls.put(call)
	return value, ok, nil
}

// GetVersioned reads a key with its version, for [IfVersion] and
// [Cache.DeleteIf].
func (k *Cache) GetVersioned(ctx context.Context, key string) (entry Entry, ok bool, err error) {
	call, err := k.read(ctx, opGetVersioned, key, nil)
	if err != nil {
		return Entry{}, false, err
	}
	entry, ok = Entry{Value: call.value, Version: call.version, HasVersion: call.hasVersion}, call.ok
	k.c.calls.put(call)
	return entry, ok, nil
}

// Put writes a key, over whatever it holds; without [WithTTL] for good.
//
// If the error is [ErrOutcomeUnknown] the write may have happened: the
// connection or ctx ended before the answer came.
func (k *Cache) Put(ctx context.Context, key string, value []byte, opts ...PutOption) error {
	ttl, err := ttlOf(opts)
	if err != nil {
		return err
	}
	call, err := k.call(opPut, key)
	if err != nil {
		return err
	}
	call.put = wire.CachePut{
		Tenant: k.c.cfg.tenant, Namespace: k.namespace, Cache: k.name,
		Key: call.key, Value: value, RequestID: wire.Some(call.id), TTLMS: ttl,
	}
	if err := k.send(ctx, call, &call.put); err != nil {
		return err
	}
	k.c.calls.put(call)
	return nil
}

// Delete removes a key and gives the value it had; existed is false when
// there was none.
func (k *Cache) Delete(ctx context.Context, key string) (previous []byte, existed bool, err error) {
	call, err := k.call(opDelete, key)
	if err != nil {
		return nil, false, err
	}
	err = k.send(ctx, call, &wire.CacheDelete{
		Tenant: k.c.cfg.tenant, Namespace: k.namespace, Cache: k.name,
		Key: call.key, RequestID: wire.Some(call.id),
	})
	if err != nil {
		return nil, false, err
	}
	previous, existed = call.value, call.ok
	k.c.calls.put(call)
	return previous, existed, nil
}

// read is a cache_get.
func (k *Cache) read(ctx context.Context, op cacheOp, key string, dst []byte) (*cacheCall, error) {
	call, err := k.call(op, key)
	if err != nil {
		return nil, err
	}
	call.value = dst
	call.get = wire.CacheGet{
		Tenant: k.c.cfg.tenant, Namespace: k.namespace, Cache: k.name,
		Key: call.key, RequestID: wire.Some(call.id),
	}
	return call, k.send(ctx, call, &call.get)
}

// call starts a request about a key.
func (k *Cache) call(op cacheOp, key string) (*cacheCall, error) {
	if k.err != nil {
		return nil, k.err
	}
	call := k.c.calls.get()
	call.op = op
	call.id = k.c.ids.Add(1)
	call.key = append(call.key[:0], key...)
	if err := wire.ValidateKey(call.key); err != nil {
		k.c.calls.put(call)
		return nil, nameError("cache key", key, err)
	}
	return call, nil
}

// send encodes a request and does it. On an error the call is gone.
func (k *Cache) send(ctx context.Context, call *cacheCall, m wire.Message) error {
	call.frame = wire.AppendMessage(call.frame[:0], m)
	if n := len(call.frame) - wire.HeaderSize; n > k.c.cfg.maxFrame {
		op := call.op.String()
		k.c.calls.put(call)
		return &Error{Op: op, Code: CodeInvalidRequest, Retry: RetryNever, Err: frameTooLarge(n, k.c.cfg.maxFrame)}
	}
	return k.c.do(ctx, call)
}

// ttlOf reads the options of a write. A time to live that cannot be is
// refused before anything is sent.
func ttlOf(opts []PutOption) (wire.Optional[uint64], error) {
	var o putOptions
	for _, opt := range opts {
		o = opt.applyPut(o)
	}
	if !o.ttlSet {
		return wire.Optional[uint64]{}, nil
	}
	if o.ttl <= 0 {
		return wire.Optional[uint64]{}, &Error{
			Op: "cache put", Code: CodeInvalidRequest, Retry: RetryNever,
			Message: "a time to live of " + o.ttl.String() + ", the least is 1ms",
		}
	}
	ms := uint64(o.ttl / time.Millisecond)
	if o.ttl%time.Millisecond != 0 {
		ms++
	}
	return wire.Some(ms), nil
}
