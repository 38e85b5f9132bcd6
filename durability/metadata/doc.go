// Package metadata holds what is promised about the control plane against real
// processes: instances of it and brokers are stopped, killed, frozen and started
// again under load, and nothing that was acknowledged may be missing, no reader
// of a feed may lose a change, and no data of a broker may go without a
// deletion. There is nothing here but tests.
//
// KILLS sets how often something is killed or frozen, ROUNDS how often all
// instances are restarted one after the other, and CHANGES how many changes the
// run of the feeds makes; without them all are small, for the tests of every
// day. The figures of a whole cluster are benchmarks, to be run by hand:
//
//	go test -run '^$' -bench . -benchtime 1x ./durability/metadata
package metadata
