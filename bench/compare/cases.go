package main

import (
	"fmt"
	"maps"
	"time"

	"github.com/felixlog/felix/bench/internal/felix"
	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/natsref"
	"github.com/felixlog/felix/bench/internal/rawquic"
	"github.com/felixlog/felix/bench/internal/redisref"
)

// The shapes of the work, the same on both sides of every row.
const (
	batchRecords  = 64
	smallRecord   = 256
	largeRecord   = 1024
	subscribers   = 10
	fanoutConns   = 4
	cacheBytes    = 256
	cacheKeys     = 1000
	cacheInFlight = 32
	// publishWindow is what a Felix publisher may have unanswered, in bytes:
	// the client's own default.
	publishWindow = 4 << 20
	// maxLag is how many records a publisher may be ahead of the slowest of
	// its subscribers: 64 batches, several times what is ever under way.
	maxLag = 64 * batchRecords
	// pollFor is how long a receive loop looks again, where it polls.
	pollFor = 200 * time.Microsecond
	// peerEvery and peerBatch make 500 batches a second, a load that a
	// machine of two cores carries with time to spare.
	peerEvery = 2 * time.Millisecond
	peerBatch = 10
	// frozenWindow and frozenQueue bound what a frozen subscriber holds up,
	// in bytes and batches: a fifth of a second's worth, so that they are
	// full before the warm-up is over.
	frozenWindow = 64 << 10
	frozenQueue  = 64
)

// The names of the cases that are not made up of a shape.
const (
	felixFanout4  = "felix.fanout-4-conns"
	felixFanout10 = "felix.fanout-10-conns"
	felixLone     = "felix.lone"
	felixLonePoll = "felix.lone-poll"
	felixStall    = "felix.stall"
	felixPeers    = "felix.peers"
	felixFrozen   = "felix.peers-one-frozen"
	rawBulkFanout = "raw.bulk-4-conns"
	rawLone       = "raw.lone"
	rawLonePoll   = "raw.lone-poll"
	natsFanout    = "nats.fanout"
	natsFanoutTLS = "nats.fanout-tls"
)

// The ways to drive Redis and NATS KV.
const (
	redisTLS          = "tls"
	redisTLSPipelined = "tls-pipelined"
	redisPlain        = "plain"
	kvMemory          = "memory"
	kvShared          = "memory-shared"
	kvFile            = "file"
)

func felixAcked(size int) string         { return fmt.Sprintf("felix.acked-%d", size) }
func rawBulk(size int) string            { return fmt.Sprintf("raw.bulk-%d", size) }
func felixCache(op string, n int) string { return fmt.Sprintf("felix.cache-%s-%d", op, n) }
func rawEcho(op string, n int) string    { return fmt.Sprintf("raw.echo-%s-%d", op, n) }
func redisLoad(op, way string) string    { return "redis." + op + "-" + way }
func natsKV(op, storage string) string   { return "nats.kv-" + op + "-" + storage }

// contenders lists every case by name.
func contenders() map[string]contender {
	all := map[string]contender{
		felixFanout4:  onFelix(losslessBroker(), partFelixFanout, fanoutOver(fanoutConns)),
		felixFanout10: onFelix(losslessBroker(), partFelixFanout, fanoutOver(subscribers)),
		felixLone:     onFelix(felixBroker{}, partFelixLone, lone),
		felixLonePoll: onFelix(felixBroker{poll: pollFor}, partFelixLone, lone),
		felixStall:    onFelix(stallingBroker(), partFelixStall, stall),
		felixPeers:    onFelix(felixBroker{}, partFelixPeers, peers(false)),
		felixFrozen:   onFelix(felixBroker{}, partFelixPeers, peers(true)),
		rawBulkFanout: bulk(fanoutConns, smallRecord, true),
		rawLone:       echo(0, 1, smallRecord, frames.LonePublish(smallRecord)),
		rawLonePoll:   echo(pollFor, 1, smallRecord, frames.LonePublish(smallRecord)),
		natsFanout:    onNATS(natsref.ServerSpec{}, partNATSFanout, natsFanoutSpec),
		natsFanoutTLS: onNATS(natsref.ServerSpec{TLS: true}, partNATSFanout, natsFanoutSpec),
	}
	for _, size := range []int{smallRecord, largeRecord} {
		all[felixAcked(size)] = onFelix(felixBroker{}, partFelixAcked, func(b *bench, t felix.Target, _ serving) any {
			return felix.AckedSpec{Target: t, Phases: b.phases, Batch: batchRecords, RecordBytes: size, Window: publishWindow}
		})
		all[rawBulk(size)] = bulk(1, size, false)
	}
	for _, op := range []string{"get", "put"} {
		for _, v := range cacheValues() {
			all[felixCache(op, v.bytes)] = onFelix(felixBroker{}, partFelixCache, func(b *bench, t felix.Target, _ serving) any {
				return felix.CacheSpec{Target: t, Phases: b.phases, InFlight: cacheInFlight, Put: op == "put", Value: v.bytes, Keys: cacheKeys}
			})
			all[rawEcho(op, v.bytes)] = echo(0, cacheInFlight, v.bytes, cacheSizes(op, v.bytes))
		}
		for _, way := range []string{redisTLS, redisTLSPipelined, redisPlain} {
			all[redisLoad(op, way)] = onRedis(redisref.Target{TLS: way != redisPlain}, partRedisLoad, func(b *bench, t redisref.Target) any {
				return redisref.LoadSpec{
					Target: t, Phases: b.phases, InFlight: cacheInFlight, Pipelined: way == redisTLSPipelined,
					Put: op == "put", Value: cacheBytes, Keys: cacheKeys,
				}
			})
		}
		for _, storage := range []string{kvMemory, kvShared, kvFile} {
			conns := cacheInFlight
			if storage == kvShared {
				conns = 1
			}
			all[natsKV(op, storage)] = onNATS(natsref.ServerSpec{JetStream: true}, partNATSKV, func(b *bench, t natsref.Target) any {
				return natsref.KVSpec{
					Target: t, Phases: b.phases, InFlight: cacheInFlight, Conns: conns, Put: op == "put",
					File: storage == kvFile, Value: cacheBytes, Keys: cacheKeys,
				}
			})
		}
	}
	maps.Copy(all, durableContenders())
	maps.Copy(all, queueContenders())
	return all
}

func cacheSizes(op string, value int) frames.Sizes {
	key := measure.NewKeys(1)[0]
	if op == "put" {
		return frames.CachePut(key, value)
	}
	return frames.CacheGet(key, value)
}

func fanoutOver(conns int) func(*bench, felix.Target, serving) any {
	return func(b *bench, t felix.Target, _ serving) any {
		return felix.FanoutSpec{
			Target: t, Phases: b.phases, Subscribers: subscribers, Conns: conns, Batch: batchRecords,
			RecordBytes: smallRecord, MaxLag: maxLag, Window: publishWindow,
		}
	}
}

func lone(b *bench, t felix.Target, _ serving) any {
	return felix.LoneSpec{Target: t, Phases: b.phases, RecordBytes: smallRecord}
}

func stall(b *bench, t felix.Target, s serving) any {
	return felix.StallSpec{
		Target: t, Phases: b.phases, Subscribers: subscribers, Batch: batchRecords, RecordBytes: largeRecord,
		Window: publishWindow, PID: s.process.PID(), Allowed: stallingBroker().allowed,
	}
}

func peers(frozen bool) func(*bench, felix.Target, serving) any {
	return func(b *bench, t felix.Target, _ serving) any {
		return felix.StalledPeerSpec{
			Target: t, Phases: b.phases, Subscribers: subscribers, Every: peerEvery, Batch: peerBatch, RecordBytes: smallRecord,
			Frozen: frozen, Window: frozenWindow, Queue: frozenQueue,
		}
	}
}

func natsFanoutSpec(b *bench, t natsref.Target) any {
	return natsref.FanoutSpec{
		Target: t, Phases: b.phases, Subscribers: subscribers, Batch: batchRecords, RecordBytes: smallRecord, MaxLag: maxLag,
	}
}

// bulk is a one-way run over raw QUIC of the frames a subscriber receives or
// of those a publisher sends.
func bulk(conns, size int, events bool) contender {
	return onRaw(0, partRawBulk, func(b *bench, addr string) any {
		return rawquic.BulkSpec{
			Addr: addr, TLS: b.files, Phases: b.phases, Conns: conns, Events: events, Batch: batchRecords, RecordBytes: size,
		}
	})
}

// echo is a run of requests and replies over raw QUIC.
func echo(poll time.Duration, inFlight, bytes int, s frames.Sizes) contender {
	return onRaw(poll, partRawEcho, func(b *bench, addr string) any {
		return rawquic.EchoSpec{
			Addr: addr, TLS: b.files, Poll: poll, Phases: b.phases, InFlight: inFlight,
			Request: s.Request, Reply: s.Reply, Bytes: bytes,
		}
	})
}
