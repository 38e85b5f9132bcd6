package metadata

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestKills kills instances without warning, the leader among them, and freezes
// the leader of the group for a while. Whatever was acknowledged is there in the
// end; of what was not answered, a write was done or was not.
func TestKills(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, patientNodes...)
			rng := rand.New(rand.NewPCG(7, 8))
			l := startLoad(t, p, false)
			kills, led, frozen := setting(t, "KILLS", 4), 0, 0
			for round := range kills {
				time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond) // a random moment is the point
				n, leads := rng.IntN(len(p.instances)), false
				if name == "raft" && round%2 == 0 {
					n, leads = p.awaitLeader(t), true
				}
				if leads && round%4 == 0 {
					p.instances[n].freeze()
					frozen++
					l.progress(t, p.instances[n].name+" is frozen")
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond) // so is how long it is frozen
					p.instances[n].thaw()
					p.awaitReady(n)
				} else {
					p.instances[n].kill()
					if leads {
						led++
					}
					l.progress(t, p.instances[n].name+" is killed")
					p.restart(n)
				}
				l.progress(t, p.instances[n].name+" is back")
			}
			l.finish(t)
			t.Logf("%d kills, %d of the leader; %d times it was frozen", kills-frozen, led, frozen)
		})
	}
}

// awaitLeader is the instance that leads, once one does.
func (p *plane) awaitLeader(t *testing.T) (n int) {
	t.Helper()
	eventually(t, "a leader", func() error {
		var found bool
		if n, found = p.leader(); !found {
			return fmt.Errorf("none of %d instances leads", len(p.instances))
		}
		return nil
	})
	return n
}
