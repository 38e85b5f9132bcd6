package memory

import (
	"cmp"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// identities are what a tenant's identities rest on. The lists are replaced,
// never changed.
type identities struct {
	bootstrapped bool
	keys         []*model.SigningKey // oldest first
	issuers      []*model.IdpIssuer  // sorted, as the lists below
	policies     []model.Policy
	groupings    []model.Grouping
}

func comparePolicies(a, b model.Policy) int {
	return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Action, b.Action))
}

func compareGroupings(a, b model.Grouping) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Role, b.Role))
}

func findIssuer(list []*model.IdpIssuer, issuer string) (int, bool) {
	return slices.BinarySearchFunc(list, issuer, func(i *model.IdpIssuer, s string) int { return cmp.Compare(i.Issuer, s) })
}

// with and without are a sorted list changed by one.
func with[T any](list []T, v T, compare func(a, b T) int) []T {
	i, there := slices.BinarySearchFunc(list, v, compare)
	if there {
		return list
	}
	return slices.Insert(slices.Clone(list), i, v)
}

func without[T any](list []T, v T, compare func(a, b T) int) (rest []T, there bool) {
	i, there := slices.BinarySearchFunc(list, v, compare)
	if !there {
		return list, false
	}
	return slices.Delete(slices.Clone(list), i, i+1), true
}

func (i *identities) putIssuer(issuer model.IdpIssuer) {
	issuer.Audiences = some(issuer.Audiences)
	at, there := findIssuer(i.issuers, issuer.Issuer)
	i.issuers = slices.Clone(i.issuers)
	if there {
		i.issuers[at] = &issuer
	} else {
		i.issuers = slices.Insert(i.issuers, at, &issuer)
	}
}

func (s *State) identities(tenant string) (*identities, error) {
	i, ok := s.auth[tenant]
	if !ok {
		return nil, missing("tenant")
	}
	return i, nil
}

type issuerBody struct {
	TenantID string          `json:"tenant_id"`
	Issuer   model.IdpIssuer `json:"issuer"`
}

func (s *State) putIssuer(b issuerBody) error {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return err
	}
	i.putIssuer(b.Issuer)
	return nil
}

type issuerName struct {
	TenantID string `json:"tenant_id"`
	Issuer   string `json:"issuer"`
}

func (s *State) deleteIssuer(b issuerName) error {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return err
	}
	at, there := findIssuer(i.issuers, b.Issuer)
	if !there {
		return missing("issuer")
	}
	i.issuers = slices.Delete(slices.Clone(i.issuers), at, at+1)
	return nil
}

type policyBody struct {
	TenantID string       `json:"tenant_id"`
	Policy   model.Policy `json:"policy"`
}

func (s *State) addPolicy(b policyBody) error {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return err
	}
	i.policies = with(i.policies, b.Policy, comparePolicies)
	return nil
}

func (s *State) removePolicy(b policyBody) error {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return err
	}
	rest, there := without(i.policies, b.Policy, comparePolicies)
	if !there {
		return missing("policy")
	}
	i.policies = rest
	return nil
}

type groupingBody struct {
	TenantID string         `json:"tenant_id"`
	Grouping model.Grouping `json:"grouping"`
}

func (s *State) addGrouping(b groupingBody) error {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return err
	}
	i.groupings = with(i.groupings, b.Grouping, compareGroupings)
	return nil
}

func (s *State) removeGrouping(b groupingBody) error {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return err
	}
	rest, there := without(i.groupings, b.Grouping, compareGroupings)
	if !there {
		return missing("grouping")
	}
	i.groupings = rest
	return nil
}

type bootstrapBody struct {
	TenantID string         `json:"tenant_id"`
	Seed     model.AuthSeed `json:"seed"`
}

func (s *State) bootstrapTenant(b bootstrapBody) error {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return err
	}
	return i.bootstrap(b.Seed)
}

type initializeBody struct {
	Tenant model.Tenant   `json:"tenant"`
	Seed   model.AuthSeed `json:"seed"`
}

func (s *State) initializeTenant(b initializeBody) ([]model.SigningKey, error) {
	if err := store.CheckFirstKey(b.Seed.Key); err != nil {
		return nil, err
	}
	i, there := s.auth[b.Tenant.TenantID]
	if !there {
		i = &identities{}
	}
	if err := i.bootstrap(b.Seed); err != nil {
		return nil, err
	}
	if !there {
		s.addTenant(b.Tenant, i)
	}
	return i.listed(), nil
}

// bootstrap gives a tenant its first rights, once; where it fails it has
// changed nothing.
func (i *identities) bootstrap(seed model.AuthSeed) error {
	if i.bootstrapped {
		return store.Conflict(store.Bootstrapped, "tenant has been initialised already")
	}
	if err := i.ensureKey(seed.Key); err != nil {
		return err
	}
	for _, issuer := range seed.Issuers {
		i.putIssuer(issuer)
	}
	for _, p := range seed.Policies {
		i.policies = with(i.policies, p, comparePolicies)
	}
	for _, g := range seed.Groupings {
		i.groupings = with(i.groupings, g, compareGroupings)
	}
	i.bootstrapped = true
	return nil
}
