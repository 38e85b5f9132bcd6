package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// A target holds what it was given, and data that outlives it. It complains of
// what a target is never asked for.
type target struct {
	t    testing.TB
	mu   sync.Mutex
	has  map[string]string // name to settings
	data map[string]bool   // "stream t/n/s uid" of all that was ever served
	log  []string
	fail func(step string) error
}

func newTarget(t testing.TB) *target {
	return &target{t: t, has: make(map[string]string), data: make(map[string]bool)}
}

func (g *target) step(format string, args ...any) error {
	step := fmt.Sprintf(format, args...)
	if g.fail != nil {
		if err := g.fail(step); err != nil {
			return err
		}
	}
	g.log = append(g.log, step)
	return nil
}

func (g *target) add(name, within, settings string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.has[within]; within != "" && !there {
		g.t.Errorf("%s is added to %s, which is not there", name, within)
	}
	if err := g.step("add %s", name); err != nil {
		return err
	}
	g.has[name] = settings
	return nil
}

func (g *target) remove(name string, within ...string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.has[name]; !there {
		g.t.Errorf("%s is removed and not there", name)
	}
	if err := g.step("remove %s", name); err != nil {
		return err
	}
	delete(g.has, name)
	maps.DeleteFunc(g.has, func(k, _ string) bool {
		return slices.ContainsFunc(within, func(p string) bool { return strings.HasPrefix(k, p) })
	})
	return nil
}

func (g *target) AddTenant(t string) error { return g.add("tenant "+t, "", "") }
func (g *target) RemoveTenant(t string) error {
	return g.remove("tenant "+t, "namespace "+t+"/", "stream "+t+"/", "cache "+t+"/", "shard "+t+"/")
}
func (g *target) AddNamespace(k model.NamespaceKey) error {
	return g.add("namespace "+k.TenantID+"/"+k.Namespace, "tenant "+k.TenantID, "")
}
func (g *target) RemoveNamespace(k model.NamespaceKey) error {
	p := k.TenantID + "/" + k.Namespace
	return g.remove("namespace "+p, "stream "+p+"/", "cache "+p+"/", "shard "+p+"/")
}

func (g *target) AddStream(s model.Stream) error {
	err := g.add("stream "+streamName(s.Key()), "namespace "+s.TenantID+"/"+s.Namespace, streamText(s))
	if err == nil {
		g.mu.Lock()
		g.data["stream "+streamName(s.Key())+" "+s.UID] = true
		g.mu.Unlock()
	}
	return err
}

func streamText(s model.Stream) string {
	size := uint64(0)
	if s.Retention.MaxSizeBytes != nil {
		size = *s.Retention.MaxSizeBytes
	}
	return fmt.Sprintf("%s, %d shards, %d bytes", s.UID, s.Shards, size)
}

func (g *target) RemoveStream(k model.StreamKey) error {
	return g.remove("stream "+streamName(k), "shard "+streamName(k)+"/")
}

func (g *target) AddCache(c model.Cache) error {
	err := g.add("cache "+cacheName(c.Key()), "namespace "+c.TenantID+"/"+c.Namespace, c.UID)
	if err == nil {
		g.mu.Lock()
		g.data["cache "+cacheName(c.Key())+" "+c.UID] = true
		g.mu.Unlock()
	}
	return err
}

func (g *target) RemoveCache(k model.CacheKey) error { return g.remove("cache " + cacheName(k)) }

func (g *target) Purge(_ context.Context, d model.Tombstone) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := fmt.Sprintf("%s %s/%s/%s", d.Kind, d.TenantID, d.Namespace, d.Name)
	if uid, _, _ := strings.Cut(g.has[name], ","); uid == d.UID && uid != "" {
		g.t.Errorf("data of %s is removed while it is served with that uid", name)
	}
	if err := g.step("purge %s %s", name, d.UID); err != nil {
		return 0, err
	}
	if !g.data[name+" "+d.UID] {
		return 0, nil
	}
	delete(g.data, name+" "+d.UID)
	return 1, nil
}

func (g *target) shard(k model.ShardKey) string {
	if k.Kind == model.CacheShard {
		return fmt.Sprintf("shard %s/%s/%s/%d (cache)", k.TenantID, k.Namespace, k.Stream, k.Shard)
	}
	return fmt.Sprintf("shard %s/%s/%s/%d", k.TenantID, k.Namespace, k.Stream, k.Shard)
}

func (g *target) Assign(k model.ShardKey, generation uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.step("assign %s at %d", g.shard(k), generation); err != nil {
		return err
	}
	g.has[g.shard(k)] = fmt.Sprint(generation)
	return nil
}

func (g *target) Unassign(k model.ShardKey, generation uint64, _ string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.step("unassign %s at %d", g.shard(k), generation); err != nil {
		return err
	}
	delete(g.has, g.shard(k))
	return nil
}

func (g *target) Release(k model.ShardKey, _ string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.step("release %s", g.shard(k)); err != nil {
		return err
	}
	delete(g.has, g.shard(k))
	return nil
}

// holds is everything it was given, sorted.
func (g *target) holds() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]string, 0, len(g.has))
	for name, settings := range g.has {
		all = append(all, strings.TrimSuffix(name+": "+settings, ": "))
	}
	slices.Sort(all)
	return all
}

func (g *target) steps() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	log := g.log
	g.log = nil
	return log
}
