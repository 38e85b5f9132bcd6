package main

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/bench/internal/commitref"
	"github.com/felixlog/felix/bench/internal/felix"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/natsref"
	"github.com/felixlog/felix/bench/internal/redisref"
	"github.com/felixlog/felix/bench/internal/report"
)

// The shapes of the work on disk, the same on both sides of every row.
const (
	// durableWindow is 32 batches of 64 records of 1 KiB.
	durableWindow = 32 * batchRecords * largeRecord
	manyWaiting   = 64 // records of 1 KiB in flight, one each
	publishers    = 32 // publishers of 256 B, one record in flight each
	fastBatch     = 500
	asyncWindow   = 500
	replayRecords = 200_000
)

// The names of the cases on disk.
const (
	felixReplay     = "felix.replay"
	natsReplay      = "nats.replay"
	groupCommit     = "disk.group-commit-64"
	redisAppend     = "redis.append"
	redisAppendTLS  = "redis.append-tls"
	natsFastAlways  = "nats.fast-always"
	natsFast        = "nats.fast"
	natsAsyncAlways = "nats.async-always"
	natsSyncAlways  = "nats.sync-always"
	natsSyncTLS     = "nats.sync-always-tls"
	natsSync        = "nats.sync"
)

func felixDurable(size int) string       { return fmt.Sprintf("felix.durable-%d", size) }
func felixPublishers(n int) string       { return fmt.Sprintf("felix.durable-publishers-%d", n) }
func felixDurableCache(op string) string { return "felix.durable-cache-" + op }
func redisDurable(op string) string      { return "redis." + op + "-aof" }

func durableContenders() map[string]contender {
	onDisk := felixBroker{durable: true}
	always := natsref.ServerSpec{JetStream: true, SyncAlways: true}
	all := map[string]contender{
		felixPublishers(manyWaiting): onFelix(onDisk, partFelixPublishers, publishersOf(manyWaiting, largeRecord)),
		felixPublishers(publishers):  onFelix(onDisk, partFelixPublishers, publishersOf(publishers, smallRecord)),
		felixReplay: onFelix(onDisk, partFelixReplay, func(b *bench, t felix.Target, _ serving) any {
			return felix.ReplaySpec{Target: t, Phases: b.phases, Records: b.stored.replay, Batch: batchRecords, RecordBytes: smallRecord}
		}),
		natsReplay: onNATS(natsref.ServerSpec{JetStream: true}, partNATSReplay, func(b *bench, t natsref.Target) any {
			return natsref.ReplaySpec{Target: t, Phases: b.phases, Records: b.stored.replay, RecordBytes: smallRecord}
		}),
		groupCommit:     {start: bareCommit},
		redisAppend:     onRedis(redisref.Target{Durable: true}, partRedisAppend, redisAppendSpec),
		redisAppendTLS:  onRedis(redisref.Target{Durable: true, TLS: true}, partRedisAppend, redisAppendSpec),
		natsFastAlways:  onNATS(always, partNATSPublish, natsPublish(natsref.WayFast, fastBatch, smallRecord)),
		natsFast:        onNATS(natsref.ServerSpec{JetStream: true}, partNATSPublish, natsPublish(natsref.WayFast, fastBatch, smallRecord)),
		natsAsyncAlways: onNATS(always, partNATSPublish, natsPublish(natsref.WayAsync, asyncWindow, smallRecord)),
		natsSyncAlways:  onNATS(always, partNATSPublish, natsPublish(natsref.WaySync, manyWaiting, largeRecord)),
		natsSyncTLS: onNATS(natsref.ServerSpec{JetStream: true, SyncAlways: true, TLS: true}, partNATSPublish,
			natsPublish(natsref.WaySync, manyWaiting, largeRecord)),
		natsSync: onNATS(natsref.ServerSpec{JetStream: true}, partNATSPublish, natsPublish(natsref.WaySync, manyWaiting, largeRecord)),
	}
	for _, size := range []int{smallRecord, largeRecord} {
		all[felixDurable(size)] = onFelix(onDisk, partFelixAcked, func(b *bench, t felix.Target, _ serving) any {
			return felix.AckedSpec{Target: t, Phases: b.phases, Batch: batchRecords, RecordBytes: size, Window: durableWindow}
		})
	}
	for _, op := range []string{"get", "put"} {
		all[felixDurableCache(op)] = onFelix(onDisk, partFelixCache, func(b *bench, t felix.Target, _ serving) any {
			return felix.CacheSpec{Target: t, Phases: b.phases, InFlight: cacheInFlight, Put: op == "put", Value: cacheBytes, Keys: cacheKeys}
		})
		all[redisDurable(op)] = onRedis(redisref.Target{Durable: true}, partRedisLoad, func(b *bench, t redisref.Target) any {
			return redisref.LoadSpec{Target: t, Phases: b.phases, InFlight: cacheInFlight, Put: op == "put", Value: cacheBytes, Keys: cacheKeys}
		})
	}
	return all
}

func publishersOf(n, size int) func(*bench, felix.Target, serving) any {
	return func(b *bench, t felix.Target, _ serving) any {
		return felix.PublishersSpec{Target: t, Phases: b.phases, Publishers: n, Clients: 1, RecordBytes: size}
	}
}

func natsPublish(way string, inFlight, size int) func(*bench, natsref.Target) any {
	return func(b *bench, t natsref.Target) any {
		return natsref.PublishSpec{Target: t, Phases: b.phases, Way: way, InFlight: inFlight, RecordBytes: size}
	}
}

func redisAppendSpec(b *bench, t redisref.Target) any {
	return redisref.AppendSpec{Target: t, Phases: b.phases, Publishers: publishers, RecordBytes: smallRecord}
}

// bareCommit has no server: the client writes and syncs itself.
func bareCommit(_ context.Context, b *bench, _ int) (serving, string, any, error) {
	dir, remove, err := b.scratch("commit")
	if err != nil {
		return serving{}, "", nil, err
	}
	spec := commitref.Spec{Dir: dir, Phases: b.phases, Writers: manyWaiting, RecordBytes: largeRecord}
	return serving{close: remove}, partGroupCommit, spec, nil
}

// durableRows lists the rows on disk. Felix syncs before each answer.
func durableRows() []row {
	against := func(id, work, reference string, m measure.Metric, floor, goal float64, felix, ref string) row {
		return row{Row: report.Row{ID: id, Work: work, Reference: reference, Metric: m, Floor: floor, Goal: goal}, felix: felix, ref: ref}
	}
	const (
		batches = "publish acked, synced, 1 KiB x 64, 32 batches in flight"
		small   = "publish acked, synced, 256 B x 64"
		one     = "publish acked, synced, 1 KiB, one record each, 64 in flight"
		many    = "publish acked, synced, 256 B, 32 publishers"
		replay  = "replay from disk, 256 B"
	)
	many64, many32 := felixPublishers(manyWaiting), felixPublishers(publishers)
	rows := []row{
		against("durable-1k", batches, "raw QUIC bulk, same frames, one way", measure.MBPerSec, .40, .65, felixDurable(largeRecord), rawBulk(largeRecord)),
		against("durable-64-disk", one, "group commit in one process, 64 writers", measure.RecordsPerSec, .20, .35, many64, groupCommit),
		against("durable-64-nats", one, "JetStream, sync always, plain TCP, 64 in flight", measure.RecordsPerSec, 5, 10, many64, natsSyncAlways),
		against("durable-64-nats-tls", one, "JetStream, sync always, TLS, 64 in flight", measure.RecordsPerSec, 0, 0, many64, natsSyncTLS),
		against("durable-64-nats-lazy", one, "JetStream, not synced, plain TCP, 64 in flight", measure.RecordsPerSec, 0, 0, many64, natsSync),
		against("durable-nats-fast", small, "JetStream, sync always, fast batches of 500", measure.RecordsPerSec, 0, 0, felixDurable(smallRecord), natsFastAlways),
		against("durable-nats-fast-lazy", small, "JetStream, not synced, fast batches of 500", measure.RecordsPerSec, 0, 0, felixDurable(smallRecord), natsFast),
		against("durable-nats-async", small, "JetStream, sync always, 500 in flight", measure.RecordsPerSec, 0, 0, felixDurable(smallRecord), natsAsyncAlways),
		against("durable-32-redis", many, "Redis streams, AOF always, plain TCP, 32 connections", measure.RecordsPerSec, .9, 1.2, many32, redisAppend),
		against("durable-32-redis-tls", many, "Redis streams, AOF always, TLS, 32 connections", measure.RecordsPerSec, 0, 0, many32, redisAppendTLS),
		against("replay-256", replay, "JetStream ordered consumer, plain TCP", measure.RecordsPerSec, 2, 5, felixReplay, natsReplay),
	}
	for _, op := range []string{"get", "put"} {
		work := fmt.Sprintf("cache on the log, synced, %s, %d B values, 32 in flight on one stream", op, cacheBytes)
		rows = append(rows, against("durable-cache-"+op, work, "Redis, AOF always, plain TCP, 32 connections", measure.OpsPerSec, 0, 0, felixDurableCache(op), redisDurable(op)))
	}
	return rows
}
