package kvlog

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
)

type registerOp struct {
	write   Write
	get     bool
	value   string // of a get: "" for absent
	applied bool
	version uint64
	failed  bool // refused by the disk, and never applied
}

type register struct {
	value   string
	version uint64
}

// registers is one register a key, with versions.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := string(o.Input.(registerOp).write.Key)
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range byKey {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		r, in, out := state.(register), input.(registerOp), output.(registerOp)
		if out.failed {
			return true, r
		}
		if in.get {
			return out.value == r.value && (out.value == "" || out.version == r.version), r
		}
		holds := true
		switch in.write.Condition.kind {
		case absent:
			holds = r.value == ""
		case atVersion:
			holds = r.value != "" && r.version == in.write.Condition.version
		}
		if in.write.Op == Delete {
			holds = holds && r.value != ""
			if holds {
				return out.applied && out.value == r.value, register{}
			}
			return !out.applied, r
		}
		if !holds {
			return !out.applied && out.version == r.version, r
		}
		return out.applied, register{string(in.write.Value), out.version}
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}

// Concurrent clients, a compaction that never rests and writes that fail: every
// key behaves as one register.
func TestEveryKeyIsARegister(t *testing.T) {
	const clients, ops, keys = 5, 80, 4
	for seed := range uint64(10 * soak.Times()) {
		r := newRig(t, func(r *rig) { r.opts.CompactFloor, r.opts.CompactFactor = 1<<10, 2 })
		r.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: ".log", Skip: 20, Times: 1})
		r.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: ".log", Skip: 60, Times: 1})
		var now atomic.Int64 // a time at which every call and return is another
		var mu sync.Mutex
		var history []porcupine.Operation
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(client)))
				seen := map[string]uint64{}
				for n := range ops {
					in := drawOp(rng, fmt.Sprintf("%d.%d", client, n), fmt.Sprint(rng.IntN(keys)), seen)
					call := now.Add(1)
					out := runOp(t, r.m, in)
					end := now.Add(1)
					if out.version != 0 {
						seen[string(in.write.Key)] = out.version
					}
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: end})
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if res := porcupine.CheckOperationsTimeout(registers, history, time.Minute); res != porcupine.Ok {
			t.Fatalf("seed %d: %v", seed, res)
		}
		r.die(false, 0)
	}
}

func drawOp(rng *rand.Rand, value, key string, seen map[string]uint64) registerOp {
	in := registerOp{write: put(key, value)}
	switch rng.IntN(6) {
	case 0, 1:
		in.get = true
	case 2:
		in.write = del(key)
	}
	switch rng.IntN(3) {
	case 0:
		in.write.Condition = AtVersion(seen[key])
	case 1:
		if in.write.Op == Put {
			in.write.Condition = Absent()
		}
	}
	return in
}

func runOp(t *testing.T, m *Map, in registerOp) (out registerOp) {
	if in.get {
		item, found, err := m.Get(in.write.Key)
		if err != nil || found == (len(item.Value) == 0) {
			t.Errorf("get: %+v, %v, %v", item, found, err)
		}
		return registerOp{value: string(item.Value), version: item.Version}
	}
	res, err := m.WriteWait(in.write)
	if err != nil {
		return registerOp{failed: true}
	}
	return registerOp{applied: res.Applied, version: res.Version, value: string(res.Removed.Value)}
}
