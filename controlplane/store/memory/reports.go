package memory

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

type reportsBody struct {
	Sender  string                `json:"sender"`
	Reports []model.ReplicaReport `json:"reports"`
}

// recordReports never looks at reports that are stored: they are not in
// snapshots, so a result must not depend on them.
func (s *State) recordReports(b reportsBody) ([]model.ReportOutcome, error) {
	outcomes := make([]model.ReportOutcome, len(b.Reports))
	for i := range b.Reports {
		a, _ := s.assignments.get(b.Reports[i].ShardKey)
		outcomes[i] = store.JudgeReport(b.Sender, &b.Reports[i], a)
		if outcomes[i] == model.ReportAccepted {
			s.keepReport(b.Reports[i])
		}
	}
	return outcomes, nil
}

func (s *State) keepReport(r model.ReplicaReport) {
	r.ReportedAtMillis = s.now
	r.CaughtUp = some(slices.Compact(slices.Sorted(slices.Values(r.CaughtUp))))
	if r.Offsets == nil {
		r.Offsets = map[string]uint64{}
	}
	s.reports[r.ShardKey] = &r
}
