package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/report"
)

// ownBound as a row's reference compares a run with the bound it states.
const ownBound = ""

// A row is a comparison and the two cases it reads.
type row struct {
	report.Row
	felix, ref string
	// optional rows are measured only when asked for by name.
	optional bool
}

// catalogue lists every row: those of the speed table of the design first,
// then what explains them.
func catalogue() []row {
	rows := []row{
		{Row: report.Row{
			ID: "publish-1k", Work: "publish acked, in memory, 1 KiB x 64", Reference: "raw QUIC bulk, same frames, one way",
			Metric: measure.MBPerSec, Floor: .60, Goal: .85,
		}, felix: felixAcked(1024), ref: rawBulk(1024)},
		{Row: report.Row{
			ID: "publish-256", Work: "publish acked, in memory, 256 B x 64", Reference: "raw QUIC bulk, same frames, one way",
			Metric: measure.MBPerSec, Floor: .50, Goal: .75,
		}, felix: felixAcked(256), ref: rawBulk(256)},
		{Row: report.Row{
			ID: "fanout-bytes", Work: "fanout 1 to 10, 256 B x 64, lossless, 10 subscribers on 4 connections, delivered bytes",
			Reference: "raw QUIC bulk on 4 connections, the subscribers' frames, one way",
			Metric:    measure.MBPerSec, Floor: .60, Goal: .85,
		}, felix: felixFanout4, ref: rawBulkFanout},
		{Row: report.Row{
			ID: "fanout-nats", Work: "fanout 1 to 10, 256 B, lossless, delivered records",
			Reference: "NATS core, plain TCP, 10 connections", Metric: measure.RecordsPerSec, Floor: .75, Goal: 1,
		}, felix: felixFanout4, ref: natsFanout},
		{Row: report.Row{
			ID: "fanout-nats-tls", Work: "fanout 1 to 10, 256 B, lossless, delivered records",
			Reference: "NATS core over TLS, 10 connections", Metric: measure.RecordsPerSec,
		}, felix: felixFanout4, ref: natsFanoutTLS},
		{Row: report.Row{
			ID: "fanout-10-conns", Work: "fanout 1 to 10, 256 B, lossless, 10 subscribers on 10 connections, delivered records",
			Reference: "NATS core, plain TCP, 10 connections", Metric: measure.RecordsPerSec,
		}, felix: felixFanout10, ref: natsFanout},
		{Row: report.Row{
			ID: "lone-publish", Work: "acked publish, 256 B, one in flight, in memory, p50", Reference: "raw QUIC echo, same sizes, neither polls",
			Metric: measure.P50Micros, Floor: 1.25, Goal: 1.1,
		}, felix: felixLone, ref: rawLone},
		{Row: report.Row{
			ID: "lone-publish-poll", Work: "acked publish, 256 B, one in flight, in memory, p50, receive polling", Reference: "raw QUIC echo, same sizes, both poll",
			Metric: measure.P50Micros,
		}, felix: felixLonePoll, ref: rawLonePoll},
	}
	for _, value := range cacheValues() {
		rows = append(rows, echoRows("get", value)...)
		rows = append(rows, echoRows("put", value)...)
	}
	rows = append(rows, rivalRows("get")...)
	rows = append(rows, rivalRows("put")...)
	rows = append(rows, durableRows()...)
	rows = append(rows, queueRows()...)
	return append(rows, row{Row: report.Row{
		ID: "stalled-peer", Work: "one of 10 subscribers frozen, 500 batches/s of 10 x 256 B, delivery p99 of the other nine",
		Reference: "felix without a frozen subscriber, the same nine", Metric: measure.P99Micros, Floor: 1.2, Goal: 1.1,
	}, felix: felixFrozen, ref: felixPeers}, row{Row: report.Row{
		ID: "memory-stalled", Work: "resident memory of the broker, 10 subscribers that never read, one publisher at full speed",
		Reference: "what it held when idle plus what configuration allows", Metric: measure.RSSMiB, Floor: 1, Goal: 1,
	}, felix: felixStall, ref: ownBound})
}

// A cacheValue is a size of cache value.
type cacheValue struct {
	name     string
	bytes    int
	optional bool
}

func cacheValues() []cacheValue {
	return []cacheValue{{"256", cacheBytes, false}, {"0", 0, true}, {"4k", 4096, true}}
}

// echoRows compare one cache operation with an echo of its sizes.
func echoRows(op string, v cacheValue) []row {
	id := "cache-" + op + "-" + v.name
	figure := func(name string, m measure.Metric, floor, goal float64) row {
		return row{Row: report.Row{
			ID: id + "." + name, Work: fmt.Sprintf("cache %s, %d B values, 32 in flight on one stream, %s", op, v.bytes, name),
			Reference: "raw QUIC echo, same sizes, 32 in flight on one stream", Metric: m, Floor: floor, Goal: goal,
		}, felix: felixCache(op, v.bytes), ref: rawEcho(op, v.bytes), optional: v.optional}
	}
	return []row{
		figure("p50", measure.P50Micros, 1.4, 1.2),
		figure("p99", measure.P99Micros, 1.75, 1.4),
		figure("ops", measure.OpsPerSec, .65, .85),
	}
}

// rivalRows compare one cache operation with other caches.
func rivalRows(op string) []row {
	against := func(name, reference, ref string, floor, goal float64, optional bool) row {
		return row{Row: report.Row{
			ID: "cache-" + name + "-" + op, Work: fmt.Sprintf("cache %s, %d B values, 32 in flight on one stream", op, cacheBytes),
			Reference: reference, Metric: measure.OpsPerSec, Floor: floor, Goal: goal,
		}, felix: felixCache(op, cacheBytes), ref: ref, optional: optional}
	}
	return []row{
		against("redis", "Redis over TLS, 32 connections with one request in flight each", redisLoad(op, redisTLS), .8, 1.2, false),
		against("redis-pipelined", "Redis over TLS, 32 requests pipelined on one connection", redisLoad(op, redisTLSPipelined), 0, 0, false),
		against("redis-plain", "Redis over plain TCP, 32 connections", redisLoad(op, redisPlain), 0, 0, false),
		against("kv", "NATS KV in memory, plain TCP, 32 connections", natsKV(op, kvMemory), 1.3, 2, false),
		against("kv-shared", "NATS KV in memory, plain TCP, 32 in flight on one connection", natsKV(op, kvShared), 0, 0, true),
		against("kv-file", "NATS KV in files, plain TCP, 32 connections", natsKV(op, kvFile), 0, 0, true),
	}
}

// listRows names the rows with what they compare.
func listRows(w io.Writer, rows []row) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ROW\tIN\tWORK\tREFERENCE")
	for _, r := range rows {
		in := "default"
		if r.optional {
			in = "all"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.ID, in, r.Work, r.Reference)
	}
	return tw.Flush()
}
