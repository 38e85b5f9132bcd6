package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/bench/internal/natsref"
	"github.com/felixlog/felix/bench/internal/proc"
	"github.com/felixlog/felix/bench/internal/rawquic"
	"github.com/felixlog/felix/bench/internal/redisref"
)

// onRaw runs client against raw QUIC.
func onRaw(poll time.Duration, client string, spec func(b *bench, addr string) any) contender {
	return contender{start: func(ctx context.Context, b *bench, cpu int) (serving, string, any, error) {
		var e rawquic.Endpoint
		s, err := b.serve(ctx, partRawServer, rawquic.ServerSpec{TLS: b.files, Poll: poll}, cpu, &e)
		return s, client, spec(b, e.Addr), err
	}}
}

// onNATS runs client against a NATS server.
func onNATS(server natsref.ServerSpec, client string, spec func(*bench, natsref.Target) any) contender {
	return contender{start: func(ctx context.Context, b *bench, cpu int) (serving, string, any, error) {
		server := server
		server.Files = b.files
		dir, remove, err := b.scratch("nats")
		if err != nil {
			return serving{}, "", nil, err
		}
		server.Dir = dir
		var e natsref.Endpoint
		s, err := b.serve(ctx, partNATSServer, server, cpu, &e)
		if err != nil {
			remove()
		}
		s.close = remove
		return s, client, spec(b, natsref.Target{URL: e.URL, TLS: server.TLS, Files: b.files}), err
	}}
}

// redisTries is how many free ports are tried before giving up.
const redisTries = 3

// onRedis runs client against a Redis server.
func onRedis(server redisref.Target, client string, spec func(*bench, redisref.Target) any) contender {
	return contender{redis: true, start: func(ctx context.Context, b *bench, cpu int) (serving, string, any, error) {
		var errs error
		for range redisTries {
			s, target, err := b.redis(ctx, server, cpu)
			if err == nil {
				return s, client, spec(b, target), nil
			}
			errs = errors.Join(errs, err)
			if ctx.Err() != nil {
				break
			}
		}
		return serving{}, "", nil, errs
	}}
}

func (b *bench) redis(ctx context.Context, server redisref.Target, cpu int) (serving, redisref.Target, error) {
	path, err := redisref.Find()
	if err != nil {
		return serving{}, redisref.Target{}, err
	}
	target, err := redisref.NewTarget(server.TLS, b.files)
	if err != nil {
		return serving{}, target, err
	}
	target.Durable = server.Durable
	dir, remove, err := b.scratch("redis")
	if err != nil {
		return serving{}, target, err
	}
	args, err := target.Args(dir)
	if err != nil {
		remove()
		return serving{}, target, err
	}
	p, err := b.spawner.Start(proc.Spec{Path: path, Args: args, CPU: cpu})
	if err != nil {
		remove()
		return serving{}, target, err
	}
	// Ends the wait at once when the process does, on a taken port above all.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := p.Wait(ctx); err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("redis-server ended: %w", err))
		}
	}()
	if err := target.Ready(ctx); err != nil {
		p.Stop()
		remove()
		return serving{}, target, err
	}
	return serving{process: p, close: remove}, target, nil
}
