package queue

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// What is done to one record, and what is told.
type claimInput struct {
	offset uint64
	op     string // take, ack, nack, extend, restart
	// attempts name the delivery of a take that happened, of a nack and of an
	// extension.
	attempts uint32
}

type claimState struct {
	held uint32 // the delivery that stands, 0 for none
	last uint32 // the newest delivery
	done bool
}

// oneHolder is a record that one worker holds at a time. A restart forgets who
// held it, that it was acked ahead of a gap, and a first delivery.
var oneHolder = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byOffset := map[uint64][]porcupine.Operation{}
		for _, o := range history {
			offset := o.Input.(claimInput).offset
			byOffset[offset] = append(byOffset[offset], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byOffset {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{claimState{}} },
	Step: func(s, i, o any) []any {
		state, in, ok := s.(claimState), i.(claimInput), o.(bool)
		stands := state.held != 0 && state.held == in.attempts
		switch in.op {
		case "take":
			if state.done || state.held != 0 || in.attempts != state.last+1 {
				return nil
			}
			return []any{claimState{held: in.attempts, last: in.attempts}}
		case "ack":
			if !ok {
				return nil // of a record that was handed out it is never refused
			}
			return []any{claimState{last: state.last, done: true}}
		case "nack":
			if ok != stands {
				return nil
			}
			if ok {
				state.held = 0
			}
		case "extend":
			if ok != stands {
				return nil
			}
		case "restart":
			state.held = 0
			next := []any{}
			if state.done {
				// The count of a delivery that was withheld, because the ack came
				// while it was written, may be there too.
				next = append(next, state, claimState{last: state.last + 1})
			}
			for last := range state.last + 1 {
				if state.done || last == state.last || state.last == 1 {
					next = append(next, claimState{last: last})
				}
			}
			return next
		}
		return []any{state}
	},
}).ToModel()

// Workers that poll, settle and extend at once, and restarts between: every
// record is held by one of them at a time, and after its ack by nobody.
func TestClaimsAreLinearizable(t *testing.T) {
	for seed := range uint64(campaign(6, 200)) {
		mem := fstest.New(seed)
		n := newNodeOn(t, mem, Config{Visibility: time.Hour, MaxAttempts: 1 << 30, MaxWait: time.Hour})
		const records = 40
		n.fill(n.stream("s"), records)
		var history []porcupine.Operation
		var mu sync.Mutex
		var now atomic.Int64
		record := func(client int, in claimInput, call int64, ok bool) {
			end := now.Add(1)
			mu.Lock()
			history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: ok, Return: end})
			mu.Unlock()
		}
		for life := range 3 {
			sh := n.streams[0].Shard(0)
			r := n.ref(sh, "g")
			var workers sync.WaitGroup
			for client := range 4 {
				workers.Go(func() {
					worker(t, n, r, client, rand.New(rand.NewPCG(seed, uint64(10*life+client))), &now, record)
				})
			}
			workers.Wait()
			if t.Failed() {
				return
			}
			call := now.Add(1)
			next := mem.Crash(seed)
			n.again(next)
			mem = next
			n.stream("s")
			for offset := range uint64(records) {
				record(9, claimInput{offset: offset, op: "restart"}, call, true)
			}
		}
		if res := porcupine.CheckOperationsTimeout(oneHolder, history, time.Minute); res != porcupine.Ok {
			t.Fatalf("seed %d: %v\n%s", seed, res, illegal(history))
		}
		n.stop()
	}
}

// illegal shows the history of each record that no single holder explains.
func illegal(history []porcupine.Operation) (s string) {
	for _, part := range oneHolder.Partition(history) {
		one := oneHolder
		one.Partition = nil
		if porcupine.CheckOperations(one, part) {
			continue
		}
		for _, o := range part {
			s += fmt.Sprintf("%d-%d client %d: %+v %v\n", o.Call, o.Return, o.ClientId, o.Input, o.Output)
		}
	}
	return s
}

func worker(t *testing.T, n *node, r Ref, client int, rng *rand.Rand, now *atomic.Int64, record func(int, claimInput, int64, bool)) {
	var held []Record
	for range 40 {
		call := now.Add(1)
		if len(held) == 0 || rng.IntN(4) == 0 {
			records, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 1 + rng.IntN(3), Holder: holder(fmt.Sprint(client))})
			if err != nil {
				t.Error(err)
				return
			}
			for _, h := range records {
				record(client, claimInput{h.Offset, "take", h.Attempts}, call, true)
			}
			held = append(held, records...)
			continue
		}
		i := rng.IntN(len(held))
		h := held[i]
		in := claimInput{h.Offset, []string{"ack", "nack", "nack", "extend"}[rng.IntN(4)], h.Attempts}
		var err error
		switch in.op {
		case "ack":
			done := make(wait, 1)
			n.Ack(r, h.Offset, done)
			err = <-done
		case "nack":
			err = n.Nack(r, h.Offset, h.Attempts, 0)
		case "extend":
			_, err = n.Extend(r, h.Offset, h.Attempts, time.Minute)
		}
		if err != nil && !isA[*tracker.StaleError](err) {
			t.Error(err)
			return
		}
		record(client, in, call, err == nil)
		// What is let go of is settled late at times.
		if in.op != "extend" && rng.IntN(3) > 0 {
			held = append(held[:i], held[i+1:]...)
		}
	}
}
