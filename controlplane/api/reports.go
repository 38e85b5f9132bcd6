package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// ReplicaStatusRequest is what a leader says of its shards (control plane 6.5).
type ReplicaStatusRequest struct {
	Incarnation uint64              `json:"incarnation" required:"false" doc:"Not enforced."`
	Shards      []ShardStatusReport `json:"shards" maxItems:"20000"`
}

// ShardStatusReport is what a leader says of one shard.
type ShardStatusReport struct {
	ShardKeyRequest
	Generation     uint64                `json:"generation"`
	CaughtUp       []string              `json:"caught_up" maxItems:"64"`
	ReplicaOffsets []ReplicaOffsetReport `json:"replica_offsets" required:"false" maxItems:"64"`
	Drained        bool                  `json:"drained" required:"false"`
	LeaderOffset   *uint64               `json:"leader_offset" required:"false"`
}

// ReplicaOffsetReport is the next offset a follower has on its disk.
type ReplicaOffsetReport struct {
	NodeID        string `json:"node_id"`
	DurableOffset uint64 `json:"durable_offset"`
}

// ShardKeyRequest names a shard in a body; the kind is that of a stream where
// it is absent.
type ShardKeyRequest struct {
	TenantID  string          `json:"tenant_id"`
	Namespace string          `json:"namespace"`
	Stream    string          `json:"stream"`
	Shard     uint32          `json:"shard"`
	Kind      model.ShardKind `json:"kind" required:"false" enum:"stream,cache"`
}

func (k ShardKeyRequest) key() model.ShardKey {
	key := model.ShardKey(k)
	if key.Kind == "" {
		key.Kind = model.StreamShard
	}
	return key
}

// report is the record of a report, if what it holds can be stored.
func (r ShardStatusReport) report() (model.ReplicaReport, error) {
	rep := model.ReplicaReport{
		ShardKey: r.key(), Generation: r.Generation, CaughtUp: slices.Clone(r.CaughtUp),
		Offsets: make(map[string]uint64, len(r.ReplicaOffsets)), Drained: r.Drained, LeaderOffset: r.LeaderOffset,
	}
	if rep.CaughtUp == nil {
		rep.CaughtUp = []string{}
	}
	slices.Sort(rep.CaughtUp)
	rep.CaughtUp = slices.Compact(rep.CaughtUp)
	if r.Generation > maxNumber || r.LeaderOffset != nil && *r.LeaderOffset > maxNumber {
		return rep, invalid("shards: a number of %s is above %d", rep.ShardKey, int64(maxNumber))
	}
	for _, o := range r.ReplicaOffsets {
		if o.DurableOffset > maxNumber {
			return rep, invalid("shards: an offset of %s is above %d", rep.ShardKey, int64(maxNumber))
		}
		rep.Offsets[o.NodeID] = o.DurableOffset
	}
	for id := range rep.Offsets {
		if nodeIDProblem(id) != "" {
			return rep, invalid("shards: replica_offsets of %s name what is no node id", rep.ShardKey)
		}
	}
	if slices.ContainsFunc(rep.CaughtUp, func(id string) bool { return nodeIDProblem(id) != "" }) {
		return rep, invalid("shards: caught_up of %s names what is no node id", rep.ShardKey)
	}
	return rep, nil
}

// ReplicaStatusResponse is what became of each shard's report, in their order.
// Where one was refused, it is an error as well.
type ReplicaStatusResponse struct {
	Code      string             `json:"code,omitempty"`
	Message   string             `json:"message,omitempty"`
	RequestID string             `json:"request_id,omitempty"`
	Shards    []ShardStatusState `json:"shards"`
}

// ShardStatusState is what became of one report.
type ShardStatusState struct {
	model.ShardKey
	Generation uint64              `json:"generation"`
	Outcome    model.ReportOutcome `json:"outcome" enum:"accepted,not_leader,future_generation,stale,unassigned"`
}

// reportRoutes is the one of control plane 6.5.
func (s *surface) reportRoutes() {
	add(s, route{
		id: "replica-status", method: http.MethodPost, path: "/v1/nodes/{node_id}/replica-status", tag: "nodes",
		summary: "Store what a leader says of its followers",
		about:   "409 where any shard's report was refused; the others are stored all the same, and shards says which.",
		who:     anyTenant, allow: onNode(), hasBody: true, refuses: []int{http.StatusConflict},
	}, func(ctx context.Context, in *struct {
		InNode
		Body ReplicaStatusRequest
	}) (*struct {
		Status int
		Body   ReplicaStatusResponse
	}, error) {
		reports := make([]model.ReplicaReport, len(in.Body.Shards))
		for i, r := range in.Body.Shards {
			var err error
			if reports[i], err = r.report(); err != nil {
				return nil, err
			}
		}
		outcomes, err := s.o.Store.RecordReports(ctx, in.NodeID, reports)
		if err != nil {
			return nil, err
		}
		status, body := s.reported(ctx, reports, outcomes)
		return &struct {
			Status int
			Body   ReplicaStatusResponse
		}{status, body}, nil
	})
}

// reported makes the answer to reports, counts what was refused and tells the
// planner what was stored.
func (s *surface) reported(ctx context.Context, reports []model.ReplicaReport, outcomes []model.ReportOutcome) (int, ReplicaStatusResponse) {
	body := ReplicaStatusResponse{Shards: make([]ShardStatusState, len(reports))}
	status := http.StatusOK
	accepted := make([]model.ReplicaReport, 0, len(reports))
	for i, r := range reports {
		body.Shards[i] = ShardStatusState{ShardKey: r.ShardKey, Generation: r.Generation, Outcome: outcomes[i]}
		if outcomes[i] == model.ReportAccepted {
			accepted = append(accepted, r)
			continue
		}
		s.o.Observer.ReportRejected(outcomes[i])
		status = http.StatusConflict
		body.Code, body.RequestID = codeConflict, requestOf(ctx).id
		body.Message = "reports of some shards were refused and are not stored; see shards, and read the assignments again"
	}
	if len(accepted) > 0 {
		s.o.Planner.Reported(ctx, accepted)
	}
	return status, body
}
