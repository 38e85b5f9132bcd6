package model

// DumpVersion is the version of the form of a [Dump].
const DumpVersion = 1

// A Dump is a whole store, for moving it to another backend (control plane
// 14). It holds signing keys in plain text, so it is a credential; it holds no
// refresh tokens and no reports. Lists are sorted by key.
type Dump struct {
	Version     int          `json:"version"`
	Tenants     []Tenant     `json:"tenants"`
	Namespaces  []Namespace  `json:"namespaces"`
	Streams     []Stream     `json:"streams"`
	Caches      []Cache      `json:"caches"`
	Nodes       []Node       `json:"nodes"`
	Assignments []Assignment `json:"assignments"`
	Bridges     []Bridge     `json:"bridges"`
	Tombstones  []Tombstone  `json:"tombstones"`
	Auth        []TenantAuth `json:"auth"`
	Features    []string     `json:"features"` // of the fleet, that are enabled
	MovesPaused bool         `json:"moves_paused"`
	Token       uint64       `json:"placement_token"`
	// NextSeq are the heads of the feeds: a broker at the head notices nothing,
	// one behind it takes a snapshot.
	NextSeq FeedHeads `json:"next_seq"`
}

// TenantAuth is what a tenant's identities rest on.
type TenantAuth struct {
	TenantID     string       `json:"tenant_id"`
	Bootstrapped bool         `json:"bootstrapped"`
	Keys         []SigningKey `json:"keys"` // current first
	Issuers      []IdpIssuer  `json:"issuers"`
	Policies     []Policy     `json:"policies"`
	Groupings    []Grouping   `json:"groupings"`
}

// FeedHeads are the next sequences of the six feeds.
type FeedHeads struct {
	Tenants     uint64 `json:"tenants"`
	Namespaces  uint64 `json:"namespaces"`
	Streams     uint64 `json:"streams"`
	Caches      uint64 `json:"caches"`
	Nodes       uint64 `json:"nodes"`
	Assignments uint64 `json:"assignments"`
}
