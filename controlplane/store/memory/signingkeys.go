package memory

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

type keyBody struct {
	TenantID string           `json:"tenant_id"`
	Key      model.SigningKey `json:"key"`
}

type keyName struct {
	TenantID string `json:"tenant_id"`
	KID      string `json:"kid"`
}

// listed are the keys in the order of [store.Auth]: by status, each newest
// first.
func (i *identities) listed() []model.SigningKey {
	list := make([]model.SigningKey, 0, len(i.keys))
	for _, status := range []model.KeyStatus{model.KeyCurrent, model.KeyStaged, model.KeyPrevious} {
		for _, k := range slices.Backward(i.keys) {
			if k.Status == status {
				list = append(list, cloneKey(k))
			}
		}
	}
	return list
}

func (i *identities) findKey(kid string) int {
	return slices.IndexFunc(i.keys, func(k *model.SigningKey) bool { return k.KID == kid })
}

// setStatus replaces a key by itself with another status.
func (i *identities) setStatus(at int, status model.KeyStatus) {
	k := *i.keys[at]
	k.Status = status
	i.keys = slices.Clone(i.keys)
	i.keys[at] = &k
}

func (i *identities) addKey(k model.SigningKey, status model.KeyStatus) error {
	if i.findKey(k.KID) >= 0 {
		return store.Conflict(store.Exists, "signing key already exists")
	}
	if len(i.keys) >= store.MaxSigningKeys {
		return store.Conflict(store.TooManyKeys, "tenant has %d signing keys, the most there may be: retire one first", len(i.keys))
	}
	k.Status = status
	i.keys = append(slices.Clone(i.keys), &k)
	return nil
}

// ensureKey installs a current key where there is none.
func (i *identities) ensureKey(k model.SigningKey) error {
	if slices.ContainsFunc(i.keys, func(k *model.SigningKey) bool { return k.Status == model.KeyCurrent }) {
		return nil
	}
	return i.addKey(k, model.KeyCurrent)
}

func (s *State) ensureKey(b keyBody) ([]model.SigningKey, error) {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return nil, err
	}
	if err := i.ensureKey(b.Key); err != nil {
		return nil, err
	}
	return i.listed(), nil
}

func (s *State) stageKey(b keyBody) ([]model.SigningKey, error) {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return nil, err
	}
	if err := i.addKey(b.Key, model.KeyStaged); err != nil {
		return nil, err
	}
	return i.listed(), nil
}

func (s *State) activateKey(b keyName) ([]model.SigningKey, error) {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return nil, err
	}
	next := i.findKey(b.KID)
	if next < 0 {
		return nil, missing("signing key")
	}
	for at, k := range i.keys {
		if k.Status == model.KeyCurrent {
			i.setStatus(at, model.KeyPrevious)
		}
	}
	i.setStatus(next, model.KeyCurrent)
	return i.listed(), nil
}

func (s *State) retireKey(b keyName) ([]model.SigningKey, error) {
	i, err := s.identities(b.TenantID)
	if err != nil {
		return nil, err
	}
	at := i.findKey(b.KID)
	switch {
	case at < 0:
		return nil, missing("signing key")
	case i.keys[at].Status == model.KeyCurrent:
		return nil, store.Conflict(store.CurrentKey, "the current signing key cannot be retired: activate another one first")
	}
	i.keys = slices.Delete(slices.Clone(i.keys), at, at+1)
	return i.listed(), nil
}
