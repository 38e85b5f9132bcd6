package main

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/bench/internal/felix"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/natsref"
	"github.com/felixlog/felix/bench/internal/report"
)

// The shapes of the work on a queue, the same on both sides of every row.
const (
	// queueBacklog is the records of 256 B that wait for the workers. Who is
	// through with them begins again as a group, or a consumer, of its own.
	queueBacklog = 100_000
	// pollBatch is what the judged row asks for at a time.
	pollBatch = 100
	// queueClaims is how many records are claimed ahead for the rows that
	// time acknowledgements alone: what a group may have in flight.
	queueClaims = 10_000
	// acksInFlight wait for an answer in those rows.
	acksInFlight = 64
)

// The names of the cases of a queue that are not made up of a shape.
const (
	felixPollUnsynced   = "felix.queue-poll-unsynced"
	felixConsume        = "felix.queue-consume"
	felixAcks           = "felix.queue-acks"
	felixAcksPipelined  = "felix.queue-acks-pipelined"
	natsFetchTLS        = "nats.queue-fetch-tls"
	natsFetchLazy       = "nats.queue-fetch-lazy"
	natsFetchAnswered   = "nats.queue-fetch-answered"
	natsConsume         = "nats.queue-consume"
	natsAcksAnswered    = "nats.queue-acks-answered"
	natsAcksNotAnswered = "nats.queue-acks-not-answered"
)

func felixPoll(batch, workers int) string {
	return fmt.Sprintf("felix.queue-poll-%dx%d", batch, workers)
}
func natsFetch(batch, workers int) string {
	return fmt.Sprintf("nats.queue-fetch-%dx%d", batch, workers)
}

// A drainShape is how many records a poll asks for and how many workers poll.
type drainShape struct{ batch, workers int }

func drainShapes() []drainShape {
	var all []drainShape
	for _, batch := range []int{1, 10, 100} {
		for _, workers := range []int{1, 8, 32} {
			all = append(all, drainShape{batch, workers})
		}
	}
	return all
}

func queueContenders() map[string]contender {
	onDisk := felixBroker{durable: true}
	unsynced := felixBroker{durable: true, settings: []string{"FELIX_DURABLE_FSYNC_MODE=none"}}
	lazy := natsref.ServerSpec{JetStream: true}
	always := natsref.ServerSpec{JetStream: true, SyncAlways: true}
	alwaysTLS := natsref.ServerSpec{JetStream: true, SyncAlways: true, TLS: true}
	single := drainShape{pollBatch, 1}
	all := map[string]contender{
		felixPollUnsynced:   onFelix(unsynced, partFelixQueue, felixQueue(felix.WayPoll, single)),
		felixConsume:        onFelix(onDisk, partFelixQueue, felixQueue(felix.WayConsume, single)),
		felixAcks:           onFelix(onDisk, partFelixAcks, felixAcksOf(acksInFlight, 1)),
		felixAcksPipelined:  onFelix(onDisk, partFelixAcks, felixAcksOf(1, pollBatch)),
		natsFetchTLS:        onBacklog(alwaysTLS, partNATSQueue, natsQueue(natsref.WayFetch, single)),
		natsFetchLazy:       onBacklog(lazy, partNATSQueue, natsQueue(natsref.WayFetch, single)),
		natsFetchAnswered:   onBacklog(always, partNATSQueue, natsQueue(natsref.WayFetchAnswered, single)),
		natsConsume:         onBacklog(always, partNATSQueue, natsQueue(natsref.WayConsume, single)),
		natsAcksAnswered:    onBacklog(always, partNATSAcks, natsAcksOf(acksInFlight)),
		natsAcksNotAnswered: onBacklog(always, partNATSAcks, natsAcksOf(0)),
	}
	for _, s := range drainShapes() {
		all[felixPoll(s.batch, s.workers)] = onFelix(onDisk, partFelixQueue, felixQueue(felix.WayPoll, s))
		all[natsFetch(s.batch, s.workers)] = onBacklog(always, partNATSQueue, natsQueue(natsref.WayFetch, s))
	}
	return all
}

// onBacklog runs client against a NATS server whose stream holds the backlog.
func onBacklog(server natsref.ServerSpec, client string, spec func(*bench, natsref.Target) any) contender {
	return contender{start: func(ctx context.Context, b *bench, cpu int) (serving, string, any, error) {
		server := server
		server.Backlog, server.BacklogBytes = b.stored.backlog, smallRecord
		return onNATS(server, client, spec).start(ctx, b, cpu)
	}}
}

func felixQueue(way string, s drainShape) func(*bench, felix.Target, serving) any {
	return func(b *bench, t felix.Target, _ serving) any {
		return felix.QueueSpec{
			Target: t, Phases: b.phases, Way: way, Records: b.stored.backlog, RecordBytes: smallRecord, Fill: batchRecords,
			Workers: s.workers, Batch: s.batch,
		}
	}
}

func natsQueue(way string, s drainShape) func(*bench, natsref.Target) any {
	return func(b *bench, t natsref.Target) any {
		return natsref.QueueSpec{
			Target: t, Phases: b.phases, Way: way, Records: b.stored.backlog, RecordBytes: smallRecord, Workers: s.workers, Batch: s.batch,
		}
	}
}

func felixAcksOf(callers, claims int) func(*bench, felix.Target, serving) any {
	return func(b *bench, t felix.Target, _ serving) any {
		return felix.AckSpec{
			Target: t, Phases: b.phases, Records: b.stored.backlog, RecordBytes: smallRecord, Fill: batchRecords,
			Claimed: b.stored.claims, Callers: callers, ClaimsPerCall: claims,
		}
	}
}

func natsAcksOf(inFlight int) func(*bench, natsref.Target) any {
	return func(b *bench, t natsref.Target) any {
		return natsref.AckSpec{
			Target: t, Phases: b.phases, Records: b.stored.backlog, RecordBytes: smallRecord, Claimed: b.stored.claims, InFlight: inFlight,
		}
	}
}

// queueRows lists the rows of a queue. Felix answers an acknowledgement when
// the group's position past it is synced, unless a row says otherwise;
// JetStream never waits for its consumer's file.
func queueRows() []row {
	const (
		poll     = "queue, poll 100 and ack each, 1 worker, 256 B, every ack synced before its answer"
		unsynced = "queue, poll 100 and ack each, 1 worker, 256 B, nothing synced"
		always   = "JetStream, sync always, plain TCP"
	)
	against := func(id, work, reference string, m measure.Metric, floor, goal float64, felix, ref string) row {
		return row{Row: report.Row{ID: id, Work: work, Reference: reference, Metric: m, Floor: floor, Goal: goal}, felix: felix, ref: ref}
	}
	optional := func(r row) row {
		r.optional = true
		return r
	}
	one, fetch := felixPoll(pollBatch, 1), natsFetch(pollBatch, 1)
	rate := measure.RecordsPerSec
	rows := []row{
		against("queue-poll100-ack", poll, always+", fetch 100 and Ack each, not answered", rate, 1, 2, one, fetch),
		against("queue-poll100-ack-tls", poll, "JetStream, sync always, TLS, fetch 100 and Ack each, not answered", rate, 0, 0, one, natsFetchTLS),
		against("queue-poll100-ack-lazy", poll, "JetStream, not synced, plain TCP, fetch 100 and Ack each, not answered", rate, 0, 0, one, natsFetchLazy),
		optional(against("queue-poll100-ack-answered", poll, always+", fetch 100 and DoubleAck each, answered from memory", rate, 0, 0, one, natsFetchAnswered)),
		optional(against("queue-poll100-ack-unsynced", unsynced, "JetStream, not synced, plain TCP, fetch 100 and Ack each, not answered", rate, 0, 0, felixPollUnsynced, natsFetchLazy)),
		optional(against("queue-consume", "queue, Consume with a handler that does nothing, 256 B, every ack synced before its answer",
			always+", Consume and Ack each, not answered", rate, 0, 0, felixConsume, natsConsume)),
		against("queue-ack.acks", "queue, acks of records polled before, 64 in flight on one stream, synced before the answer",
			always+", DoubleAck, 64 in flight on one connection, answered from memory", measure.OpsPerSec, 0, 0, felixAcks, natsAcksAnswered),
		against("queue-ack.flushes", "queue, the same: flushes for 1,000 acks", "a flush for each ack", measure.FlushesPerThousand, 0, 0, felixAcks, ownBound),
		optional(against("queue-ack-pipelined.acks", "queue, acks of records polled before, 1 caller, 100 claims a call, synced before the answer",
			always+", Ack, not answered", measure.OpsPerSec, 0, 0, felixAcksPipelined, natsAcksNotAnswered)),
		optional(against("queue-ack-pipelined.flushes", "queue, the same: flushes for 1,000 acks", "a flush for each ack", measure.FlushesPerThousand, 0, 0, felixAcksPipelined, ownBound)),
	}
	for _, s := range drainShapes() {
		rows = append(rows, optional(against(fmt.Sprintf("queue-drain-%dx%d", s.batch, s.workers),
			fmt.Sprintf("queue, poll %d and ack each, workers: %d, 256 B, every ack synced before its answer", s.batch, s.workers),
			fmt.Sprintf("%s, fetch %d and Ack each, workers: %d, not answered", always, s.batch, s.workers),
			rate, 0, 0, felixPoll(s.batch, s.workers), natsFetch(s.batch, s.workers))))
	}
	return rows
}
