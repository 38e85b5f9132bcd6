// Package planner runs placement: it reads what there is, lets package placement
// decide, and writes the decisions, each at the generation it was decided for
// and under the placement token (control plane 7.7). It also sweeps for brokers
// that fell silent, and carries out what operators ask for.
//
// Any number of planners may run on one store. A lease chooses the one whose
// timer plans (control plane 7.8), and nothing rests on it: a pass that decided
// on what is no longer so is refused by the store.
//
// Begin at [Planner.Run] (planner.go). One pass is pass.go, then read.go, which
// reads by kept.go what changed, and write.go; sweep.go and operator.go stand
// beside it.
package planner
