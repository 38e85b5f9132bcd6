package mirror

import (
	"fmt"

	"github.com/felixlog/felix/controlplane/model"
)

func (m *Mirror) add(try tryFunc) {
	for t := range m.pic.tenants {
		if _, have := m.served.tenants[t]; !have && try("add tenant "+t, m.checked(m.o.Target.AddTenant, t)) {
			m.served.tenants[t] = struct{}{}
		}
	}
	for k := range m.pic.namespaces {
		if _, have := m.served.namespaces[k]; have || !m.hasTenant(k.TenantID) {
			continue
		}
		if try("add namespace "+k.TenantID+"/"+k.Namespace, m.addNamespace(k)) {
			m.served.namespaces[k] = struct{}{}
		}
	}
	for k := range among(m.looked.all, m.looked.caches, m.pic.caches) {
		want := m.pic.caches[k].rec
		if have, is := m.served.caches[k]; is && have == want {
			continue
		}
		if m.hasNamespace(k.TenantID, k.Namespace) && try("add cache "+cacheName(k), m.addCache(want)) {
			m.served.caches[k] = want
		} else {
			m.pic.touched.cache(want)
		}
	}
	for k := range among(m.looked.all, m.looked.streams, m.pic.streams) {
		want := m.pic.streams[k].rec
		if have, is := m.served.streams[k]; is && sameStream(have, want) {
			continue
		}
		if m.hasNamespace(k.TenantID, k.Namespace) && try("add stream "+streamName(k), m.addStream(want)) {
			m.served.streams[k] = want
		} else {
			m.pic.touched.stream(want)
		}
	}
}

// What belongs to a tenant or namespace that is not there yet waits for it: the
// feeds are read one after the other.
func (m *Mirror) hasTenant(t string) bool {
	_, have := m.served.tenants[t]
	return have
}

func (m *Mirror) hasNamespace(tenant, namespace string) bool {
	_, have := m.served.namespaces[model.NamespaceKey{TenantID: tenant, Namespace: namespace}]
	return have
}

func (m *Mirror) checked(add func(string) error, tenant string) error {
	if err := m.o.ValidateName("tenant", tenant); err != nil {
		return err
	}
	return add(tenant)
}

func (m *Mirror) addNamespace(k model.NamespaceKey) error {
	if err := m.o.ValidateName("namespace", k.Namespace); err != nil {
		return err
	}
	return m.o.Target.AddNamespace(k)
}

// maxShards bounds the shards of what is served.
const maxShards = 1024

func (m *Mirror) addStream(s model.Stream) error {
	if err := m.o.ValidateName("stream", s.Stream); err != nil {
		return err
	}
	if s.Shards < 1 || s.Shards > maxShards {
		return fmt.Errorf("%d shards, from 1 to %d are served", s.Shards, maxShards)
	}
	return m.o.Target.AddStream(s)
}

func (m *Mirror) addCache(c model.Cache) error {
	if err := m.o.ValidateName("cache", c.Cache); err != nil {
		return err
	}
	if c.Shards < 1 || c.Shards > maxShards {
		return fmt.Errorf("%d shards, from 1 to %d are served", c.Shards, maxShards)
	}
	return m.o.Target.AddCache(c)
}

func sameStream(a, b model.Stream) bool {
	same := func(x, y *uint64) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	if !same(a.Retention.MaxAgeSeconds, b.Retention.MaxAgeSeconds) || !same(a.Retention.MaxSizeBytes, b.Retention.MaxSizeBytes) {
		return false
	}
	a.Retention, b.Retention = model.Retention{}, model.Retention{}
	return a == b
}
