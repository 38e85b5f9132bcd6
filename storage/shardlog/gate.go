package shardlog

// Gate bounds the device flushes that run at once in the process: a flush holds
// an operating system thread, and beyond a few the device gains nothing.
type Gate struct{ slots chan struct{} }

// NewGate returns a gate for n flushes at once; n below 1 is 1.
func NewGate(n int) *Gate {
	return &Gate{slots: make(chan struct{}, max(n, 1))}
}

func (g *Gate) enter() {
	if g != nil {
		g.slots <- struct{}{}
	}
}

func (g *Gate) leave() {
	if g != nil {
		<-g.slots
	}
}
