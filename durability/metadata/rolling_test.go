package metadata

import (
	"testing"
)

// TestRollingRestart restarts the instances one after the other, in order, with
// heartbeats, waiting readers and writes under way. No call fails of who repeats
// what was refused or answered with 503; every reader sees each change once.
func TestRollingRestart(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, patientNodes...)
			rounds := setting(t, "ROUNDS", 2)
			l := startLoad(t, p, true)
			for range rounds {
				for n := range p.instances {
					p.instances[n].terminate()
					l.progress(t, p.instances[n].name+" is away")
					p.restart(n)
					l.progress(t, p.instances[n].name+" is back")
				}
			}
			l.finish(t)
			// A connection that a client left unused for so long that it was closed
			// may be closed just when it is used again.
			t.Logf("%d rounds of %d restarts; not answered: %v", rounds, len(p.instances), l.tally.silent())
		})
	}
}
