package client

import (
	"context"
	"time"

	"github.com/felixlog/felix/wire"
)

// open opens the reader's event stream, trying again as the reconnect policy
// says, and longer when it had one before.
func (r *watchReader) open(ctx context.Context) error {
	return r.c.reopen(ctx, !r.openedAt.IsZero(), r.loss.moved != nil, r.isClosed, r.attempt)
}

// attempt watches once, following redirects.
func (r *watchReader) attempt(ctx context.Context) error {
	b, err := r.c.movedTo(ctx, r.loss.moved)
	if err != nil {
		return err
	}
	return r.c.atOwner("cache watch", b, func(b *broker) (*redirect, error) {
		_, caps, err := b.connect(ctx)
		if err != nil {
			return nil, err
		}
		if err := r.supported(caps, b.addr); err != nil {
			return nil, err
		}
		cn, err := b.eventConn(ctx)
		if err != nil {
			return nil, err
		}
		to, err := r.watchOn(ctx, cn)
		if err != nil || to != nil {
			cn.releaseSubscription()
		}
		return to, err
	})
}

func (r *watchReader) supported(caps *capabilities, addr string) error {
	if err := caps.require(needWatch().feature, needWatch().name, addr); err != nil || !r.state.underway {
		return err
	}
	return caps.require(wire.FeatureCacheWatchRetained, "CACHE_WATCH_RETAINED", addr)
}

func (r *watchReader) watchOn(ctx context.Context, cn *conn) (*redirect, error) {
	cn.router.run()
	m, err := cn.exchange(ctx, "cache watch", needWatch().name, r.request(), RetryNow)
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *wire.CacheWatchStarted:
		es, err := cn.router.claim(ctx, m.SubscriptionID)
		if err != nil {
			return nil, err
		}
		if err := r.adopt(cn, es); err != nil {
			return nil, err
		}
		r.confirmed(m)
		r.openedAt = time.Now()
		r.loss = loss{}
		return nil, nil
	case *wire.NotLeader:
		return redirected(m), nil
	case *wire.SubscribeCursorError:
		return nil, &CursorError{Reason: m.Reason.String(), Requested: m.Requested, Available: m.Available}
	default:
		return nil, unexpectedAnswer("cache watch", cn.b.addr, m)
	}
}

func (r *watchReader) request() *wire.CacheWatch {
	m := &wire.CacheWatch{
		Tenant: r.c.cfg.tenant, Namespace: r.cache.namespace, Cache: r.cache.name, Retained: r.state.underway,
	}
	if r.o.byKey {
		m.Key = wire.Some([]byte(r.o.key))
	} else {
		m.Prefix = wire.Some([]byte(r.o.prefix))
		if r.sharded {
			m.Shard = wire.Some(r.shard)
		}
	}
	if r.hasNext && !r.state.underway {
		m.FromOffset = wire.Some(r.next)
	}
	return m
}
