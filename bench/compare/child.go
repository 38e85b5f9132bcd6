package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/felixlog/felix/bench/internal/commitref"
	"github.com/felixlog/felix/bench/internal/felix"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/natsref"
	"github.com/felixlog/felix/bench/internal/proc"
	"github.com/felixlog/felix/bench/internal/rawquic"
	"github.com/felixlog/felix/bench/internal/redisref"
)

// A part is what a child process of this program plays: a server, or a
// client that measures. Its specification and its answer are JSON.
type part func(ctx context.Context, spec []byte) error

// The names of the parts.
const (
	partRawServer   = "raw-server"
	partRawBulk     = "raw-bulk"
	partRawEcho     = "raw-echo"
	partNATSServer  = "nats-server"
	partNATSFanout  = "nats-fanout"
	partNATSKV      = "nats-kv"
	partRedisLoad   = "redis-load"
	partFelixAcked  = "felix-acked"
	partFelixFanout = "felix-fanout"
	partFelixLone   = "felix-lone"
	partFelixCache  = "felix-cache"
	partFelixStall  = "felix-stall"
	partFelixPeers  = "felix-peers"

	partGroupCommit     = "group-commit"
	partNATSPublish     = "nats-publish"
	partNATSReplay      = "nats-replay"
	partRedisAppend     = "redis-append"
	partFelixPublishers = "felix-publishers"
	partFelixReplay     = "felix-replay"

	partNATSQueue  = "nats-queue"
	partNATSAcks   = "nats-acks"
	partFelixQueue = "felix-queue"
	partFelixAcks  = "felix-acks"
)

func parts() map[string]part {
	return map[string]part{
		partRawServer:   server(rawquic.Serve),
		partRawBulk:     client(rawquic.Bulk),
		partRawEcho:     client(rawquic.Echo),
		partNATSServer:  server(natsref.Serve),
		partNATSFanout:  client(natsref.Fanout),
		partNATSKV:      client(natsref.KV),
		partRedisLoad:   client(redisref.Load),
		partFelixAcked:  client(felix.Acked),
		partFelixFanout: client(felix.Fanout),
		partFelixLone:   client(felix.Lone),
		partFelixCache:  client(felix.Cache),
		partFelixStall:  client(felix.Stall),
		partFelixPeers:  client(felix.StalledPeer),

		partGroupCommit:     client(commitref.Run),
		partNATSPublish:     client(natsref.Publish),
		partNATSReplay:      client(natsref.Replay),
		partRedisAppend:     client(redisref.Append),
		partFelixPublishers: client(felix.Publishers),
		partFelixReplay:     client(felix.Replay),

		partNATSQueue:  client(natsref.Queue),
		partNATSAcks:   client(natsref.Acks),
		partFelixQueue: client(felix.Queue),
		partFelixAcks:  client(felix.Acks),
	}
}

// server is a part that says its endpoint and serves until it is released.
func server[Spec, Endpoint any](serve func(context.Context, Spec, func(Endpoint) error) error) part {
	return func(ctx context.Context, b []byte) error {
		var spec Spec
		if err := json.Unmarshal(b, &spec); err != nil {
			return fmt.Errorf("specification: %w", err)
		}
		return serve(ctx, spec, func(e Endpoint) error { return proc.Say(e) })
	}
}

// client is a part that measures, says its result and ends.
func client[Spec any](run func(context.Context, Spec) (measure.Result, error)) part {
	return func(ctx context.Context, b []byte) error {
		var spec Spec
		if err := json.Unmarshal(b, &spec); err != nil {
			return fmt.Errorf("specification: %w", err)
		}
		r, err := run(ctx, spec)
		if err != nil {
			return err
		}
		return proc.Say(r)
	}
}

// childMain plays the part that args name and returns the exit code. What
// goes wrong it says on stderr, for the parent to quote.
func childMain(ctx context.Context, args []string, stderr io.Writer) int {
	all := parts()
	if len(args) != 1 || all[args[0]] == nil {
		fmt.Fprintf(stderr, "compare: %s PART is for compare itself; parts: %s\n",
			childMarker, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		return exitUsage
	}
	ctx, cancel, spec, err := proc.Attend(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", args[0], err)
		return exitFailed
	}
	defer cancel()
	if err := all[args[0]](ctx, spec); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", args[0], err)
		return exitFailed
	}
	return exitOK
}
