package apiclient

import (
	"context"
	"encoding/json"

	"github.com/felixlog/felix/controlplane/model"
)

// SystemInfo says what a control plane is (control plane 4.1).
type SystemInfo struct {
	RegionID   string `json:"region_id"`
	APIVersion string `json:"api_version"`
	Features   struct {
		DurableStorage bool `json:"durable_storage"`
		TieredStorage  bool `json:"tiered_storage"`
		Bridges        bool `json:"bridges"`
	} `json:"features"`
}

// SystemInfo needs no token.
func (c *Client) SystemInfo(ctx context.Context) (SystemInfo, error) {
	var i SystemInfo
	err := c.getOpen(ctx, path("v1", "system", "info"), &i)
	return i, err
}

// Live asks whether the process answers; it needs no token.
func (c *Client) Live(ctx context.Context) error {
	return c.getOpen(ctx, path("v1", "system", "live"), nil)
}

// Ready asks whether an instance can serve; it needs no token. Why it cannot is
// the message of an [*Error] with status 503.
func (c *Client) Ready(ctx context.Context) error {
	return c.getOpen(ctx, path("v1", "system", "ready"), nil)
}

// A Region is one that the control plane knows.
type Region struct {
	RegionID    string `json:"region_id"`
	DisplayName string `json:"display_name"`
}

// Regions needs no token.
func (c *Client) Regions(ctx context.Context) ([]Region, error) {
	var got struct {
		Items []Region `json:"items"`
	}
	err := c.getOpen(ctx, path("v1", "regions"), &got)
	return got.Items, err
}

// Region needs no token.
func (c *Client) Region(ctx context.Context, id string) (Region, error) {
	var r Region
	err := c.getOpen(ctx, path("v1", "regions", id), &r)
	return r, err
}

// OpenAPI is the document that describes the API; it needs no token.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	var got json.RawMessage
	err := c.do(ctx, call{method: "GET", path: path("v1", "openapi.json"), into: &got, idempotent: true, open: true, max: 16 << 20})
	return got, err
}

// Bridges are the pairs of regions between which streams may have copies
// (control plane 3.2).
func (c *Client) Bridges(ctx context.Context) ([]model.Bridge, error) {
	return list[model.Bridge](ctx, c, path("v1", "bridges"), nil)
}

// PutBridge adds one; one that is there stays.
func (c *Client) PutBridge(ctx context.Context, b model.Bridge) error {
	return c.post(ctx, path("v1", "bridges"), b, nil)
}

// DeleteBridge takes one away.
func (c *Client) DeleteBridge(ctx context.Context, b model.Bridge) error {
	return c.remove(ctx, path("v1", "bridges", b.Source, b.Destination), nil, nil, nil)
}

// FleetFeatures are what the brokers can do together (control plane 4.11).
type FleetFeatures struct {
	Supported    []string `json:"supported"`
	Enabled      []string `json:"enabled"`
	ServingNodes []string `json:"serving_nodes"`
}

// FleetFeatures lists them.
func (c *Client) FleetFeatures(ctx context.Context) (FleetFeatures, error) {
	var f FleetFeatures
	err := c.get(ctx, path("v1", "fleet", "features"), nil, &f)
	return f, err
}

// Finalized is what enabling a feature did, or would do.
type Finalized struct {
	Feature      string   `json:"feature"`
	DryRun       bool     `json:"dry_run"`
	Enabled      bool     `json:"enabled"`
	WouldEnable  bool     `json:"would_enable"`
	Lacking      []string `json:"lacking"` // serving nodes without it
	ServingNodes []string `json:"serving_nodes"`
}

// FinalizeFeature enables a feature for good, or says with a dry run whether it
// could.
func (c *Client) FinalizeFeature(ctx context.Context, feature string, dryRun bool) (Finalized, error) {
	body := struct {
		DryRun bool `json:"dry_run"`
	}{dryRun}
	var f Finalized
	err := c.post(ctx, path("v1", "fleet", "features", feature, "finalize"), body, &f)
	return f, err
}
