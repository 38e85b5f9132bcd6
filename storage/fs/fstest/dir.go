package fstest

import "maps"

// node is a *dir or a *file.
type node interface{ isNode() }

func (*dir) isNode()  {}
func (*file) isNode() {}

// dir is a directory: its names, those that are durable, and what changed
// between.
type dir struct {
	names   map[string]node
	durable map[string]node
	changes []change
}

// change is one thing done to the names of a directory.
type change struct {
	remove string // "" if nothing goes
	set    string // "" if nothing comes
	node   node
}

func newDir() *dir { return &dir{names: map[string]node{}, durable: map[string]node{}} }

func (d *dir) apply(c change) {
	c.do(d.names)
	d.changes = append(d.changes, c)
}

func (c change) do(names map[string]node) {
	if c.remove != "" {
		delete(names, c.remove)
	}
	if c.set != "" {
		names[c.set] = c.node
	}
}

func (d *dir) sync() {
	for _, c := range d.changes {
		c.do(d.durable)
	}
	d.changes = nil
}

// copier copies a tree, each node once: the durable names and the current ones
// share their nodes.
type copier struct{ done map[node]node }

func newCopier() *copier { return &copier{done: map[node]node{}} }

func (c *copier) node(n node) node {
	if copied, ok := c.done[n]; ok {
		return copied
	}
	switch n := n.(type) {
	case *dir:
		return c.dir(n)
	case *file:
		f := n.clone()
		c.done[n] = f
		return f
	}
	panic("fstest: a node that is neither directory nor file")
}

func (c *copier) dir(d *dir) *dir {
	next := newDir()
	c.done[d] = next
	for name, n := range d.names {
		next.names[name] = c.node(n)
	}
	for name, n := range d.durable {
		next.durable[name] = c.node(n)
	}
	for _, ch := range d.changes {
		if ch.node != nil {
			ch.node = c.node(ch.node)
		}
		next.changes = append(next.changes, ch)
	}
	return next
}

// settled makes a directory with exactly those names, all durable.
func settled(names map[string]node) *dir {
	return &dir{names: names, durable: maps.Clone(names)}
}
