package planner

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// overtaken is a store on which somebody else writes the shard first, a few
// times. Every other time the caller has already seen the new token, so that it
// is the generation that differs.
type overtaken struct {
	store.Store
	left int
}

func (s *overtaken) PutAssignmentIf(
	ctx context.Context, a model.Assignment, expected *uint64, token uint64,
) (store.PutResult, error) {
	if s.left > 0 {
		s.left--
		now, err := s.Assignment(ctx, a.ShardKey)
		if err != nil {
			return store.PutResult{}, err
		}
		other, err := s.Store.PutAssignmentIf(ctx, now, &now.Generation, token)
		if err != nil {
			return store.PutResult{}, err
		}
		if s.left%2 == 0 {
			token = other.Token
		}
	}
	return s.Store.PutAssignmentIf(ctx, a, expected, token)
}
