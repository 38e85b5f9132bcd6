package api

import (
	"context"
	"net/http"
)

// SystemInfo says what an instance is (control plane 4.1).
type SystemInfo struct {
	RegionID   string         `json:"region_id"`
	APIVersion string         `json:"api_version"`
	Features   SystemFeatures `json:"features"`
}

// SystemFeatures are what an instance can do.
type SystemFeatures struct {
	DurableStorage bool `json:"durable_storage" doc:"Whether what is written survives the process."`
	TieredStorage  bool `json:"tiered_storage"`
	Bridges        bool `json:"bridges" doc:"Whether bridges between regions are a resource of the API."`
}

// SystemStatus is the answer of a probe.
type SystemStatus struct {
	Status string `json:"status"`
}

// Region is a region as the API lists it.
type Region struct {
	RegionID    string `json:"region_id"`
	DisplayName string `json:"display_name"`
}

type statusOut struct{ Body SystemStatus }

// systemRoutes are those of control plane 4.1.
func (s *surface) systemRoutes() {
	const tag = "system"
	ok := &statusOut{SystemStatus{"ok"}}
	add(s, route{
		id: "system-info", method: http.MethodGet, path: "/v1/system/info", tag: tag, summary: "What this instance is",
	}, func(context.Context, *struct{}) (*struct{ Body SystemInfo }, error) {
		return &struct{ Body SystemInfo }{SystemInfo{
			RegionID: s.o.RegionID, APIVersion: "v1",
			Features: SystemFeatures{DurableStorage: s.o.Store.Durable(), Bridges: true},
		}}, nil
	})
	add(s, route{
		id: "system-live", method: http.MethodGet, path: "/v1/system/live", tag: tag, summary: "Whether the process runs",
		about: "Touches nothing outside the process.",
	}, func(context.Context, *struct{}) (*statusOut, error) { return ok, nil })
	ready := func(ctx context.Context, _ *struct{}) (*statusOut, error) {
		if err := s.o.Ready(ctx); err != nil {
			return nil, &Error{Status: http.StatusServiceUnavailable, Code: codeNotReady, Message: err.Error()}
		}
		return ok, nil
	}
	add(s, route{
		id: "system-ready", method: http.MethodGet, path: "/v1/system/ready", tag: tag, summary: "Whether this instance should get requests",
	}, ready)
	add(s, route{
		id: "system-health", method: http.MethodGet, path: "/v1/system/health", tag: tag, summary: "The same as ready",
	}, ready)

	local := Region{RegionID: s.o.RegionID, DisplayName: "Local Region"}
	add(s, route{
		id: "list-regions", method: http.MethodGet, path: "/v1/regions", tag: tag, summary: "List the region of this instance",
	}, func(context.Context, *struct{}) (*listOut[Region], error) {
		return &listOut[Region]{List[Region]{Items: []Region{local}}}, nil
	})
	add(s, route{
		id: "get-region", method: http.MethodGet, path: "/v1/regions/{region_id}", tag: tag, summary: "Get a region",
		refuses: []int{http.StatusNotFound},
	}, func(_ context.Context, in *struct {
		RegionID string `path:"region_id"`
	}) (*struct{ Body Region }, error) {
		if in.RegionID != local.RegionID {
			return nil, &Error{Status: http.StatusNotFound, Code: codeNotFound, Message: "region not found"}
		}
		return &struct{ Body Region }{local}, nil
	})
}
