package fstest

import "sync"

// Gate stops the operations that come to it until it is opened. It serves one
// or many rules.
type Gate struct {
	arrived chan struct{}
	open    chan struct{}
	arrive  sync.Once
	release sync.Once
}

// NewGate makes a closed gate.
func NewGate() *Gate {
	return &Gate{arrived: make(chan struct{}), open: make(chan struct{})}
}

// Arrived is closed when the first operation has come to the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Open lets through all who wait and all who come.
func (g *Gate) Open() { g.release.Do(func() { close(g.open) }) }

func (g *Gate) wait() {
	g.arrive.Do(func() { close(g.arrived) })
	<-g.open
}
