package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/planner"
	"github.com/felixlog/felix/controlplane/rbac"
	"github.com/felixlog/felix/controlplane/store"
)

// InNode is the path of a node.
type InNode struct {
	NodeID string `path:"node_id"`
}

type nodeOut struct{ Body model.Node }

type nodeViewOut struct{ Body planner.NodeView }

// PatchNodeRequest changes what an operator may change of a node.
type PatchNodeRequest struct {
	Region    *string            `json:"region" required:"false"`
	Labels    *map[string]string `json:"labels" required:"false" doc:"Replaces all labels."`
	Capacity  *CapacityRequest   `json:"capacity" required:"false" doc:"Replaces both fields."`
	Lifecycle *model.Lifecycle   `json:"lifecycle" required:"false" enum:"live,draining"`
}

func (r PatchNodeRequest) patch() (model.NodePatch, error) {
	p := model.NodePatch{Region: r.Region, Labels: r.Labels, Lifecycle: r.Lifecycle}
	var faults []error
	if r.Region != nil {
		faults = append(faults, checkRegion(*r.Region))
	}
	if r.Labels != nil {
		faults = append(faults, checkLabels(*r.Labels))
	}
	if r.Capacity != nil {
		c := r.Capacity.capacity()
		faults = append(faults, checkCapacity(c))
		p.Capacity = &c
	}
	if err := errors.Join(faults...); err != nil {
		return p, refusedSpec(err)
	}
	return p, nil
}

// refusedSpec is the answer to a node whose identity or spec is not valid: a
// conflict, by control plane 4.6.
func refusedSpec(err error) *Error {
	return conflict("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// NodeFilter narrows a list of nodes; all that is given must hold.
type NodeFilter struct {
	Lifecycle string   `query:"lifecycle" enum:"live,draining,down,left"`
	Region    string   `query:"region"`
	Labels    []string `query:"label,explode" maxItems:"64" doc:"key=value; may be repeated."`
}

func (f NodeFilter) matches(n model.Node) bool {
	if f.Lifecycle != "" && string(n.Status.Lifecycle) != f.Lifecycle || f.Region != "" && n.Spec.Region != f.Region {
		return false
	}
	for _, label := range f.Labels {
		key, want, _ := strings.Cut(label, "=")
		if have, ok := n.Spec.Labels[key]; !ok || have != want {
			return false
		}
	}
	return true
}

// nodeRoutes are those of control plane 4.6 that operators use; those of
// brokers are with membership.
func (s *surface) nodeRoutes() {
	const tag, one = "nodes", "/v1/nodes/{node_id}"
	add(s, route{
		id: "list-nodes", method: http.MethodGet, path: "/v1/nodes", tag: tag, summary: "List brokers and what placement makes of them",
		who: anyTenant, allow: inCluster(rbac.NodeView), refuses: []int{http.StatusBadRequest},
	}, func(ctx context.Context, in *struct {
		NodeFilter
		Paging
	}) (*listOut[planner.NodeView], error) {
		all, err := s.o.Store.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		now, err := s.o.Store.NowMillis(ctx)
		if err != nil {
			return nil, err
		}
		views := make([]planner.NodeView, 0, len(all))
		for _, n := range all {
			if in.matches(n) {
				views = append(views, s.o.Planner.NodeView(n, now))
			}
		}
		l, err := pageOf(views, in.Paging, func(v planner.NodeView) string { return v.Node.NodeID })
		return &listOut[planner.NodeView]{l}, err
	})
	add(s, route{
		id: "get-node", method: http.MethodGet, path: one, tag: tag, summary: "Get a broker",
		who: anyTenant, allow: inCluster(rbac.NodeView), refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *InNode) (*nodeViewOut, error) {
		n, err := s.o.Store.Node(ctx, in.NodeID)
		if err != nil {
			return nil, err
		}
		now, err := s.o.Store.NowMillis(ctx)
		if err != nil {
			return nil, err
		}
		return &nodeViewOut{s.o.Planner.NodeView(n, now)}, nil
	})
	add(s, route{
		id: "patch-node", method: http.MethodPatch, path: one, tag: tag, summary: "Change a broker's region, labels, capacity or lifecycle",
		about: "A lifecycle may go from live to draining and back. Only a registration revives a broker that is down or left.",
		who:   anyTenant, allow: onNode(), hasBody: true, refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *struct {
		InNode
		Body PatchNodeRequest
	}) (*nodeOut, error) {
		patch, err := in.Body.patch()
		if err != nil {
			return nil, err
		}
		before, err := s.nodeBefore(ctx, in.NodeID)
		if err != nil {
			return nil, err
		}
		n, err := s.o.Store.PatchNode(ctx, in.NodeID, patch)
		if err != nil {
			return nil, err
		}
		s.nodeChanged(before, n)
		return &nodeOut{n}, nil
	})
	add(s, route{
		id: "delete-node", method: http.MethodDelete, path: one, tag: tag, summary: "Forget a broker that serves nothing",
		who: anyTenant, allow: inCluster(rbac.NodeManage), status: http.StatusNoContent,
		refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *InNode) (*noBody, error) {
		if err := s.o.Store.DeleteNode(ctx, in.NodeID); err != nil {
			return nil, err
		}
		s.o.Observer.NodeChanged(model.Deregistered)
		s.o.Planner.Wake()
		return nil, nil
	})
}

// nodeBefore is a node before it is changed, for what is counted; nil if it is
// not known here. Another instance may know it: whether it is there is for the
// change to say.
func (s *surface) nodeBefore(ctx context.Context, id string) (*model.Node, error) {
	n, err := s.o.Store.Node(ctx, id)
	if _, unknown := errors.AsType[*store.NotFoundError](err); unknown {
		return nil, nil
	}
	return &n, err
}

// nodeChanged counts a change and has it planned with.
func (s *surface) nodeChanged(before *model.Node, after model.Node) {
	s.o.Observer.NodeChanged(model.Updated)
	if before != nil && before.Status.Lifecycle != after.Status.Lifecycle {
		s.o.Observer.NodeTransitioned(before.Status.Lifecycle, after.Status.Lifecycle)
	}
	s.o.Planner.Wake()
}
