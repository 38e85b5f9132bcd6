package memory

import (
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// A refreshTable holds the refresh tokens of a tenant.
type refreshTable struct {
	byID        map[string]*model.RefreshToken
	byFamily    index
	byPrincipal index
}

// An index lists tokens by something they share.
type index map[string]map[string]struct{}

func (x index) add(shared, token string) {
	if x[shared] == nil {
		x[shared] = make(map[string]struct{})
	}
	x[shared][token] = struct{}{}
}

func (x index) remove(shared, token string) {
	delete(x[shared], token)
	if len(x[shared]) == 0 {
		delete(x, shared)
	}
}

func newRefreshTable() *refreshTable {
	return &refreshTable{byID: make(map[string]*model.RefreshToken), byFamily: make(index), byPrincipal: make(index)}
}

func (t *refreshTable) add(r *model.RefreshToken) {
	t.byID[r.TokenID] = r
	t.byFamily.add(r.FamilyID, r.TokenID)
	t.byPrincipal.add(r.PrincipalID, r.TokenID)
}

// revoke marks tokens, and counts those that were not marked yet.
func (t *refreshTable) revoke(tokens map[string]struct{}) int {
	n := 0
	for id := range tokens {
		if old := t.byID[id]; !old.Revoked {
			r := *old
			r.Revoked = true
			t.byID[id] = &r
			n++
		}
	}
	return n
}

// purge forgets what expired before, and counts it.
func (t *refreshTable) purge(beforeSecs uint64) int {
	n := 0
	for id, r := range t.byID {
		if r.ExpiresAtSecs < beforeSecs {
			delete(t.byID, id)
			t.byFamily.remove(r.FamilyID, id)
			t.byPrincipal.remove(r.PrincipalID, id)
			n++
		}
	}
	return n
}

func (s *State) refreshTokens(tenant string) (*refreshTable, error) {
	t, ok := s.tokens[tenant]
	if !ok {
		return nil, missing("tenant")
	}
	return t, nil
}

func (s *State) insertToken(r model.RefreshToken) error {
	t, err := s.refreshTokens(r.TenantID)
	if err != nil {
		return err
	}
	if t.byID[r.TokenID] != nil {
		return store.Conflict(store.Exists, "refresh token already exists")
	}
	r.Groups = some(r.Groups)
	t.add(&r)
	return nil
}

type tokenName struct {
	TenantID string `json:"tenant_id"`
	TokenID  string `json:"token_id"`
}

func (s *State) takeToken(b tokenName) (model.RefreshToken, error) {
	t, err := s.refreshTokens(b.TenantID)
	if err != nil {
		return model.RefreshToken{}, err
	}
	old := t.byID[b.TokenID]
	if old == nil {
		return model.RefreshToken{}, missing("refresh token")
	}
	if !old.Used {
		r := *old
		r.Used = true
		t.byID[b.TokenID] = &r
	}
	return *old, nil
}

type familyBody struct {
	TenantID string `json:"tenant_id"`
	FamilyID string `json:"family_id"`
}

func (s *State) revokeFamily(b familyBody) (int, error) {
	t, err := s.refreshTokens(b.TenantID)
	if err != nil {
		return 0, err
	}
	return t.revoke(t.byFamily[b.FamilyID]), nil
}

type principalBody struct {
	TenantID    string `json:"tenant_id"`
	PrincipalID string `json:"principal_id"`
}

func (s *State) revokePrincipal(b principalBody) (int, error) {
	t, err := s.refreshTokens(b.TenantID)
	if err != nil {
		return 0, err
	}
	return t.revoke(t.byPrincipal[b.PrincipalID]), nil
}

type purgeBody struct {
	BeforeSecs uint64 `json:"before_secs"`
}

func (s *State) purgeTokens(b purgeBody) (int, error) {
	n := 0
	for _, t := range s.tokens {
		n += t.purge(b.BeforeSecs)
	}
	return n, nil
}
