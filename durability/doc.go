// Package durability holds what is promised about acknowledged writes against
// real processes: a node is killed without warning in the middle of its work,
// started again on what it left on disk, and everything it had acknowledged is
// looked for. There is nothing here but tests.
//
// KILLS sets how often a node is killed in each campaign.
package durability
