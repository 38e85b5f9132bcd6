package cache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/felixlog/felix/storage/fs/fstest"
)

// What a client asks of one key, and what it is told.
type registerInput struct {
	key     int
	op      string // get, put, delete, absent, version
	value   string
	version uint64 // what a conditional put names, plus 1
}

type registerOutput struct {
	value   string
	found   bool
	version uint64 // of the entry, plus 1; 0 for none
	applied bool
}

type registerState struct {
	value   string
	version uint64 // plus 1; 0 for none
}

// register is one key as a single copy would serve it.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(registerInput).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return registerState{} },
	Step: func(s, i, o any) (bool, any) {
		state, in, out := s.(registerState), i.(registerInput), o.(registerOutput)
		there := state.version != 0
		switch in.op {
		case "get":
			return out.found == there && (!there || out.value == state.value && out.version == state.version), state
		case "delete":
			return out.applied == there && (!there || out.value == state.value), registerState{}
		}
		holds := in.op == "put" || in.op == "absent" && !there || in.op == "version" && there && in.version == state.version
		if !holds {
			return !out.applied && out.version == state.version, state
		}
		return out.applied && out.version > state.version, registerState{in.value, out.version}
	},
}

// Clients that get, put, delete and compare a few keys of a broker's cache
// see one copy, in memory and on the log, while its log is compacted.
func TestCacheIsLinearizable(t *testing.T) {
	runs, ops := campaign(4, 50), campaign(150, 400)
	for run := range runs {
		for _, name := range []string{"memory", "log"} {
			c, _ := newCache(Config{})
			if name == "log" {
				c = newDisk(t, Config{}).cache("c", 1)
			}
			history := clients(t, c, uint64(run), ops, nil)
			if res := porcupine.CheckOperationsTimeout(register, history, time.Minute); res != porcupine.Ok {
				t.Fatalf("%s, run %d: %v", name, run, res)
			}
		}
	}
}

// The same with writes that fail on the way to the disk: a refused write never
// happened, and none that was told is lost.
func TestCacheIsLinearizableUnderFaults(t *testing.T) {
	for run := range campaign(4, 50) {
		faults := fstest.NewFaults(fstest.New(uint64(run)))
		d := newDiskOn(t, faults, "/data", Config{})
		c := d.cache("c", 1)
		disturb := func(rng *rand.Rand) {
			if rng.IntN(20) == 0 {
				faults.FailWrite("caches", 1, errors.New("i/o error"))
			}
		}
		history := clients(t, c, uint64(run), campaign(150, 400), disturb)
		if res := porcupine.CheckOperationsTimeout(register, history, time.Minute); res != porcupine.Ok {
			t.Fatalf("run %d: %v", run, res)
		}
		faults.Clear()
	}
}

// clients runs five clients on ten keys. Writes that failed are left out of
// the history: they must have no effect.
func clients(t *testing.T, c *Cache, seed uint64, ops int, disturb func(*rand.Rand)) []porcupine.Operation {
	t.Helper()
	var history []porcupine.Operation
	var mu sync.Mutex
	var now atomic.Int64
	var wait sync.WaitGroup
	for id := range 5 {
		wait.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(id)))
			seen := map[int]uint64{}
			for n := range ops {
				if disturb != nil {
					disturb(rng)
				}
				in := registerInput{key: rng.IntN(10), op: []string{"get", "get", "put", "delete", "absent", "version"}[rng.IntN(6)], value: fmt.Sprint(id, "/", n)}
				in.version = seen[in.key]
				var out registerOutput
				var err error
				call := now.Add(1)
				key := fmt.Append(nil, "k", in.key)
				if in.op == "get" {
					var item Item
					item, out.found, err = c.Get(0, key)
					out.value, out.version = string(item.Value), item.Version
				} else {
					w := Write{Op: Put, Key: key, Value: []byte(in.value)}
					switch in.op {
					case "delete":
						w = Write{Op: Delete, Key: key}
					case "absent":
						w.Condition = Absent()
					case "version":
						w.Condition = AtVersion(in.version)
					}
					var r Result
					r, err = c.write(0, w)
					out = registerOutput{value: string(r.Removed.Value), applied: r.Applied, version: r.Version + 1}
					if !r.HasVersion {
						out.version = 0
					}
				}
				if in.op == "get" && out.found {
					out.version++ // 0 stands for none
				}
				end := now.Add(1)
				if err != nil {
					if disturb == nil {
						t.Error(err)
						return
					}
					continue
				}
				if out.version > 0 {
					seen[in.key] = out.version - 1
				}
				in.version++
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: in, Call: call, Output: out, Return: end})
				mu.Unlock()
				if c.Durable() && id == 0 && n%50 == 49 {
					if err := c.index(t, 0).Compact(t.Context()); err != nil && disturb == nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wait.Wait()
	return history
}
