// Package durability holds what is promised about acknowledged writes and
// claimed records against real processes: a node, or a worker of a group, is
// killed without warning in the middle of its work and started again, and
// everything that was acknowledged, by the node or by the worker, is looked
// for. There is nothing here but tests.
//
// KILLS sets how often something is killed in each campaign.
package durability
