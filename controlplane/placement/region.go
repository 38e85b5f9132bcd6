package placement

import "github.com/felixlog/felix/controlplane/model"

// regions says which nodes a region's streams may use (control plane 7.5).
type regions struct {
	p       *pass
	bridged map[model.Bridge]bool
	known   map[string][]bool
}

func (p *pass) regions() *regions {
	r := &regions{p: p, bridged: make(map[model.Bridge]bool, len(p.in.Bridges)), known: make(map[string][]bool)}
	for _, b := range p.in.Bridges {
		r.bridged[b] = true
	}
	return r
}

// of lists, by node, who may hold copies of a stream of the region; nil is all.
func (r *regions) of(region string) []bool {
	if region == "" {
		return nil
	}
	allowed, ok := r.known[region]
	if !ok {
		allowed = make([]bool, len(r.p.nodes))
		for i := range r.p.nodes {
			other := r.p.nodes[i].Spec.Region
			allowed[i] = other == region || r.bridged[model.Bridge{Source: region, Destination: other}]
		}
		r.known[region] = allowed
	}
	return allowed
}

// may says whether the node may hold a copy at all.
func (o *owner) may(i int) bool { return o.allowed == nil || o.allowed[i] }

// live says whether a node may serve the shards of an owner. One in a region
// that is not allowed counts as draining.
func (p *pass) live(o *owner, i int) bool { return i != nobody && p.nodes[i].live && o.may(i) }

// suits says whether a node may be given shards of an owner.
func (p *pass) suits(o *owner, i int) bool { return p.nodes[i].eligible && o.may(i) }

func (p *pass) serving(i int) bool { return i != nobody && p.nodes[i].serving }

// leaving says whether a node serves and is to give its copies away.
func (p *pass) leaving(o *owner, i int) bool { return p.serving(i) && !p.live(o, i) }
