package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// ImageVersion is the version of the form of a snapshot.
const ImageVersion = 1

// An Image is a state at one instant, without its reports. Making one is cheap;
// encoding it takes long and needs no lock, because records never change.
type Image struct{ data imageData }

// imageData is the form of a snapshot, in JSON. It is stored: a field that is
// added needs a new version, since an older program would drop it. No list is
// nil, so that equal states have equal bytes whatever they went through.
type imageData struct {
	Version int    `json:"version"`
	Now     uint64 `json:"now"`

	Tenants     []*model.Tenant     `json:"tenants"`
	Namespaces  []*model.Namespace  `json:"namespaces"`
	Streams     []*model.Stream     `json:"streams"`
	Caches      []*model.Cache      `json:"caches"`
	Bridges     []*model.Bridge     `json:"bridges"`
	Tombstones  []model.Tombstone   `json:"tombstones"` // of streams, then of caches; oldest first
	Nodes       []*model.Node       `json:"nodes"`
	Features    []string            `json:"features"`
	Assignments []*model.Assignment `json:"assignments"`

	MovesPaused bool   `json:"moves_paused"`
	Token       uint64 `json:"placement_token"`
	Holder      string `json:"lease_holder"`

	Auth   []authImage           `json:"auth"`
	Tokens []*model.RefreshToken `json:"refresh_tokens"`

	TenantFeed     feedImage[model.TenantChange]     `json:"tenant_feed"`
	NamespaceFeed  feedImage[model.NamespaceChange]  `json:"namespace_feed"`
	StreamFeed     feedImage[model.StreamChange]     `json:"stream_feed"`
	CacheFeed      feedImage[model.CacheChange]      `json:"cache_feed"`
	NodeFeed       feedImage[model.NodeChange]       `json:"node_feed"`
	AssignmentFeed feedImage[model.AssignmentChange] `json:"assignment_feed"`

	Answered []answeredImage `json:"answered"` // oldest first
}

type authImage struct {
	TenantID     string              `json:"tenant_id"`
	Bootstrapped bool                `json:"bootstrapped"`
	Keys         []*model.SigningKey `json:"keys"` // oldest first
	Issuers      []*model.IdpIssuer  `json:"issuers"`
	Policies     []model.Policy      `json:"policies"`
	Groupings    []model.Grouping    `json:"groupings"`
}

type feedImage[C model.Sequenced] struct {
	Next    uint64 `json:"next"`
	Changes []C    `json:"changes"`
}

type answeredImage struct {
	RID    string `json:"rid"`
	Result Result `json:"result"`
}

func imageOf[C model.Sequenced](f *feed[C]) feedImage[C] {
	return feedImage[C]{Next: f.next, Changes: f.changes.all()}
}

// Image is the state at this instant. It fails only where the state is stuck.
func (s *State) Image() (*Image, error) {
	if err := s.Stuck(); err != nil {
		return nil, err
	}
	d := imageData{
		Version: ImageVersion, Now: s.now,
		Tenants: s.tenants.all(), Namespaces: s.namespaces.all(), Streams: s.streams.all(), Caches: s.caches.all(),
		Bridges: s.bridges.all(), Tombstones: append(s.streamTombs.all(), s.cacheTombs.all()...),
		Nodes: s.nodes.all(), Features: s.features, Assignments: s.assignments.all(),
		MovesPaused: s.movesPaused, Token: s.token, Holder: s.holder,
		Auth: []authImage{}, Tokens: []*model.RefreshToken{}, Answered: s.results.all(),
		TenantFeed: imageOf(&s.tenantFeed), NamespaceFeed: imageOf(&s.namespaceFeed), StreamFeed: imageOf(&s.streamFeed),
		CacheFeed: imageOf(&s.cacheFeed), NodeFeed: imageOf(&s.nodeFeed), AssignmentFeed: imageOf(&s.assignmentFeed),
	}
	for _, t := range s.tenants.sorted {
		i := s.auth[t.TenantID]
		d.Auth = append(d.Auth, authImage{
			TenantID: t.TenantID, Bootstrapped: i.bootstrapped,
			Keys: some(i.keys), Issuers: some(i.issuers), Policies: some(i.policies), Groupings: some(i.groupings),
		})
		for _, r := range s.tokens[t.TenantID].byID {
			d.Tokens = append(d.Tokens, r)
		}
	}
	return &Image{data: d}, nil
}

// Encode is the snapshot: equal bytes for equal states.
func (i *Image) Encode() ([]byte, error) {
	d := i.data
	d.Tokens = slices.Clone(d.Tokens)
	slices.SortFunc(d.Tokens, func(a, b *model.RefreshToken) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.TokenID, b.TokenID))
	})
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode metadata snapshot: %w", err)
	}
	return b, nil
}

// Snapshot encodes the state, without its reports.
func (s *State) Snapshot() ([]byte, error) {
	i, err := s.Image()
	if err != nil {
		return nil, err
	}
	return i.Encode()
}

// Restore replaces the state by a snapshot. What is damaged, contradicts itself
// or is of a newer program is refused, and leaves the state as it was.
func (s *State) Restore(snapshot []byte) error {
	var d imageData
	r := json.NewDecoder(bytes.NewReader(snapshot))
	r.DisallowUnknownFields()
	if err := r.Decode(&d); err != nil {
		return fmt.Errorf("metadata snapshot of %d bytes is damaged or of a newer program: %w", len(snapshot), err)
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("metadata snapshot of %d bytes goes on after its end", len(snapshot))
	}
	if d.Version != ImageVersion {
		return fmt.Errorf("metadata snapshot has version %d, this program reads version %d", d.Version, ImageVersion)
	}
	fresh, err := build(s.limits, d)
	if err != nil {
		return fmt.Errorf("metadata snapshot is damaged: %w", err)
	}
	fresh.repeats = s.repeats
	*s = *fresh
	return nil
}
