// Package telemetry is what a broker tells its operators: logs and metrics.
//
// Recording is made for the data path. A counter is one atomic addition on a
// child resolved when the metrics were built; a [Latency] is two; a tenant's
// metrics are looked up once and kept. What the broker core counts anyway is
// not counted again: it is read when somebody scrapes, see [Snapshot].
// Labels take few values, and none is a shard or a connection.
package telemetry
