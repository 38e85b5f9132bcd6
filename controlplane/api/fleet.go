package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/felixlog/felix/controlplane/rbac"
)

// FleetFeatures are what the brokers can do together (control plane 4.11).
type FleetFeatures struct {
	Supported    []string `json:"supported" doc:"What this build knows."`
	Enabled      []string `json:"enabled"`
	ServingNodes []string `json:"serving_nodes"`
}

// FinalizeRequest enables a feature, for good.
type FinalizeRequest struct {
	DryRun bool `json:"dry_run" required:"false" doc:"Say whether it could be enabled, and do nothing."`
}

// Finalized is what enabling a feature did, or would do.
type Finalized struct {
	Feature      string   `json:"feature"`
	DryRun       bool     `json:"dry_run"`
	Enabled      bool     `json:"enabled" doc:"Whether it is enabled now."`
	WouldEnable  bool     `json:"would_enable" doc:"Whether nothing stands against it."`
	Lacking      []string `json:"lacking" doc:"Serving brokers without it."`
	ServingNodes []string `json:"serving_nodes"`
}

// fleetRoutes are those of control plane 4.11 about features.
func (s *surface) fleetRoutes() {
	const tag = "fleet"
	supported := slices.Sorted(slices.Values(s.o.FleetFeatures))
	add(s, route{
		id: "fleet-features", method: http.MethodGet, path: "/v1/fleet/features", tag: tag, summary: "List the features of the fleet",
		who: anyTenant, allow: inCluster(rbac.NodeView),
	}, func(ctx context.Context, _ *struct{}) (*struct{ Body FleetFeatures }, error) {
		enabled, err := s.o.Store.EnabledFeatures(ctx)
		if err != nil {
			return nil, err
		}
		serving, _, err := s.servingNodes(ctx, "")
		if err != nil {
			return nil, err
		}
		return &struct{ Body FleetFeatures }{FleetFeatures{append([]string{}, supported...), enabled, serving}}, nil
	})
	add(s, route{
		id: "finalize-feature", method: http.MethodPost, path: "/v1/fleet/features/{feature}/finalize", tag: tag,
		summary: "Enable a feature of the fleet, for good",
		about:   "Refused while a serving broker lacks it. Afterwards a broker without it cannot join. The body is optional.",
		who:     anyTenant, allow: inCluster(rbac.NodeManage), hasBody: true, refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *struct {
		Feature string `path:"feature"`
		Body    *FinalizeRequest
	}) (*struct{ Body Finalized }, error) {
		if !slices.Contains(supported, in.Feature) {
			return nil, &Error{Status: http.StatusNotFound, Code: codeNotFound, Message: "feature not found: this build does not know it"}
		}
		f, err := s.finalize(ctx, in.Feature, in.Body != nil && in.Body.DryRun)
		return &struct{ Body Finalized }{f}, err
	})
}

func (s *surface) finalize(ctx context.Context, feature string, dryRun bool) (Finalized, error) {
	f := Finalized{Feature: feature, DryRun: dryRun}
	enabled, err := s.o.Store.EnabledFeatures(ctx)
	if err != nil {
		return f, err
	}
	f.Enabled = slices.Contains(enabled, feature)
	if f.ServingNodes, f.Lacking, err = s.servingNodes(ctx, feature); err != nil {
		return f, err
	}
	if !dryRun && !f.Enabled {
		// The store decides: a broker may have joined since.
		lacking, err := s.o.Store.EnableFeature(ctx, feature)
		if err != nil {
			return f, err
		}
		if len(lacking) > 0 {
			return f, conflict("brokers that serve lack %s: %s; upgrade or drain and deregister them", feature, clip(strings.Join(lacking, ", ")))
		}
		f.Enabled, f.Lacking = true, []string{}
	}
	f.WouldEnable = len(f.Lacking) == 0
	return f, nil
}

// servingNodes are the brokers that serve, and those among them that lack a
// feature.
func (s *surface) servingNodes(ctx context.Context, feature string) (serving, lacking []string, err error) {
	nodes, err := s.o.Store.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	serving, lacking = []string{}, []string{}
	for _, n := range nodes {
		if !n.Status.Lifecycle.Serving() {
			continue
		}
		serving = append(serving, n.NodeID)
		if !slices.Contains(n.Spec.Features, feature) {
			lacking = append(lacking, n.NodeID)
		}
	}
	return serving, lacking, nil
}
