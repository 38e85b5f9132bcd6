package api

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// RetentionRequest bounds what each shard keeps.
type RetentionRequest struct {
	MaxAgeSeconds *uint64 `json:"max_age_seconds" required:"false" doc:"Null leaves it to the broker; 0 is refused."`
	MaxSizeBytes  *uint64 `json:"max_size_bytes" required:"false" doc:"Null leaves it to the broker; 0 is refused."`
}

func (r RetentionRequest) retention() (model.Retention, error) {
	for field, bound := range map[string]*uint64{"max_age_seconds": r.MaxAgeSeconds, "max_size_bytes": r.MaxSizeBytes} {
		if bound != nil && *bound == 0 {
			return model.Retention{}, invalid("retention.%s: 0 would keep nothing; give a bound, or null for the broker's", field)
		}
		if bound != nil && *bound > maxNumber {
			return model.Retention{}, invalid("retention.%s: more than %d", field, int64(maxNumber))
		}
	}
	return model.Retention(r), nil
}

// maxNumber is the largest number that every store keeps.
const maxNumber = 1<<63 - 1

// CreateStreamRequest makes a stream (control plane 4.4).
type CreateStreamRequest struct {
	Stream            string            `json:"stream"`
	Kind              model.StreamKind  `json:"kind" enum:"Stream,Queue,Cache"`
	Shards            uint32            `json:"shards" minimum:"1" maximum:"1024" doc:"Fixed at creation."`
	ReplicationFactor *uint32           `json:"replication_factor" required:"false" maximum:"32" doc:"Copies of a shard, the leader's included; 1 where it is absent or 0."`
	Retention         RetentionRequest  `json:"retention"`
	Consistency       model.Consistency `json:"consistency" enum:"Leader,Quorum"`
	Delivery          model.Delivery    `json:"delivery" enum:"AtMostOnce,AtLeastOnce"`
	Durable           bool              `json:"durable"`
	Region            *string           `json:"region" required:"false" doc:"The home region; absent is none."`
	Routing           *model.Routing    `json:"routing" required:"false" enum:"modulo,jump_hash"`
}

// newStream is the record of a request, if the caller may and all fits.
func (s *surface) newStream(ctx context.Context, in InNamespace, r CreateStreamRequest) (model.Stream, error) {
	if err := check(callerOf(ctx), rbac.StreamManage, rbac.Stream(in.TenantID, in.Namespace, r.Stream)); err != nil {
		return model.Stream{}, err
	}
	if err := s.name("stream", r.Stream); err != nil {
		return model.Stream{}, err
	}
	retention, err := r.Retention.retention()
	if err != nil {
		return model.Stream{}, err
	}
	m := model.Stream{
		TenantID: in.TenantID, Namespace: in.Namespace, Stream: r.Stream, Kind: r.Kind, Shards: r.Shards,
		ReplicationFactor: atLeastOne(r.ReplicationFactor), Retention: retention,
		Consistency: r.Consistency, Delivery: r.Delivery, Durable: r.Durable,
	}
	if r.Region != nil {
		if problem := regionProblem(*r.Region); problem != "" {
			return model.Stream{}, invalid("region: %s; leave it out for a stream without a home", problem)
		}
		m.Region = *r.Region
	}
	if r.Routing != nil && *r.Routing == model.JumpHash {
		m.Routing = model.JumpHash
	}
	m.UID, err = s.newUID()
	return m, err
}

func atLeastOne(n *uint32) uint32 {
	if n == nil {
		return 1
	}
	return max(1, *n)
}

// PatchStreamRequest changes what may change of a stream.
type PatchStreamRequest struct {
	Retention   *RetentionRequest  `json:"retention" required:"false"`
	Consistency *model.Consistency `json:"consistency" required:"false" enum:"Leader,Quorum"`
	Delivery    *model.Delivery    `json:"delivery" required:"false" enum:"AtMostOnce,AtLeastOnce"`
	Durable     *bool              `json:"durable" required:"false"`
}

func (r PatchStreamRequest) patch() (model.StreamPatch, error) {
	p := model.StreamPatch{Consistency: r.Consistency, Delivery: r.Delivery, Durable: r.Durable}
	if r.Retention == nil {
		return p, nil
	}
	retention, err := r.Retention.retention()
	p.Retention = &retention
	return p, err
}
