package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

// describedGroup is a group of two shards: one in the thick of it, one done.
func describedGroup() *groupDescription {
	busy := client.GroupInfo{
		HasCommitted: true, Committed: 17, Tail: 42, InFlight: 2, Owed: 1, DeadLetters: 3, HighWater: 20, HasHighWater: true, Trimmed: 2,
		MaxAttempts: 5, NextLapse: after(19 * time.Second), More: true,
		Held: []client.GroupHeld{
			{Offset: 17, State: client.HeldClaimed, Attempts: 3, Consumer: "worker-2", Principal: "ada", Connection: 8, Since: before(41 * time.Second), Until: after(19 * time.Second)},
			{Offset: 18, State: client.HeldDelayed, Attempts: 1, Connection: 9, Since: before(5 * time.Second), Until: after(55 * time.Second)},
			{Offset: 19, State: client.HeldOwed, Attempts: 2, Reserved: true, Redriven: true, Consumer: "worker-2"},
		},
	}
	busy.First = &busy.Held[0]
	done := client.GroupInfo{Tail: 7, First: &client.GroupHeld{Offset: 7, State: client.HeldAtTail}}
	d := &groupDescription{Stream: "orders", Group: "billing", Lag: 32}
	d.Shards = append(d.Shards, newGroupShard(0, &busy, describedAt), newGroupShard(1, &done, describedAt))
	return d
}

func TestPrintGroup(t *testing.T) {
	ta := newTestApp(t, nil)
	if err := ta.printGroup(describedGroup(), describedAt); err != nil {
		t.Fatal(err)
	}
	const want = `SHARD  COMMITTED  TAIL  LAG  IN_FLIGHT  OWED  DEAD_LETTERS
0      17         42    25   2          1     3
1      -          7     7    0          0     0

shard 0: the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 3rd of 5 times and is not finished; its claim ends in 19 s. Retention took 2 records that the group had not finished.
shard 1: the group begins at 7, the end of the stream, and nothing came since.

CLAIM   STATE                      HOLDER    CONNECTION  PRINCIPAL  SINCE     UNTIL    TRIES
0:17:3  claimed                    worker-2  8           ada        41 s ago  in 19 s  3 of 5
0:18:1  delayed                    -         9           -          5 s ago   in 55 s  1 of 5
0:19:2  owed, set aside, redriven  worker-2  -           -          -         -        2 of 5
`
	if got := ta.out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := ta.errs.String(); got != "felix: there are more; --held lists them all\n" {
		t.Errorf("remarks %q", got)
	}
}

// A name that a client made up does not steer the terminal.
func TestPrintGroupIsSafe(t *testing.T) {
	evil := client.GroupHeld{State: client.HeldClaimed, Attempts: 1, Consumer: "\x1b[2J", Principal: "\x07"}
	info := client.GroupInfo{Tail: 1, First: &evil, Held: []client.GroupHeld{evil}}
	ta := newTestApp(t, nil)
	ta.StdoutTTY = true
	if err := ta.printGroup(&groupDescription{Shards: []groupShard{newGroupShard(0, &info, describedAt)}}, describedAt); err != nil {
		t.Fatal(err)
	}
	if got := ta.out.String(); strings.ContainsAny(got, "\x1b\x07") || strings.Count(got, `\x1b[2J`) != 2 {
		t.Errorf("printed %q", got)
	}
}

func TestGroupJSON(t *testing.T) {
	got := string(appendJSON(nil, describedGroup()))
	const want = `{"stream":"orders","group":"billing","lag":32,"shards":[` +
		`{"shard":0,"committed":17,"tail":42,"lag":25,"in_flight":2,"owed":1,"dead_letters":3,"trimmed":2,"high_water":20,"max_attempts":5,"next_lapse_micros":1769860819000000,` +
		`"why":"the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 3rd of 5 times and is not finished; its claim ends in 19 s. Retention took 2 records that the group had not finished.",` +
		`"first":{"offset":17,"state":"claimed","attempts":3,"consumer":"worker-2","principal":"ada","connection":8,"since_micros":1769860759000000,"until_micros":1769860819000000},` +
		`"held":[{"offset":17,"state":"claimed","attempts":3,"consumer":"worker-2","principal":"ada","connection":8,"since_micros":1769860759000000,"until_micros":1769860819000000},` +
		`{"offset":18,"state":"delayed","attempts":1,"connection":9,"since_micros":1769860795000000,"until_micros":1769860855000000},` +
		`{"offset":19,"state":"owed","attempts":2,"consumer":"worker-2","reserved":true,"redriven":true}],"held_more":true},` +
		`{"shard":1,"tail":7,"lag":7,"in_flight":0,"owed":0,"dead_letters":0,"trimmed":0,"why":"the group begins at 7, the end of the stream, and nothing came since.",` +
		`"first":{"offset":7,"state":"at_tail","attempts":0},"held":[]}]}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDeliveryLines(t *testing.T) {
	plain := client.Delivery{Claim: client.Claim{Shard: 3, Offset: 42, Attempts: 2}, Payload: []byte("hi")}
	full := client.Delivery{Claim: client.Claim{Offset: 7, Attempts: 1}, Payload: []byte{0xff, 0}, SkippedBefore: 2, Publisher: "ada", Time: describedAt}
	for _, tc := range []struct {
		name      string
		json, tty bool
		d         client.Delivery
		want      string
	}{
		{"plain", false, false, plain, "3:42:2\thi\n"},
		{"bytes into a pipe", false, false, full, "0:7:1\t\xff\x00\n"},
		{"bytes on a terminal", false, true, full, "0:7:1\t" + `\xff\x00` + "\n"},
		{"attempts not reported", false, false, client.Delivery{Claim: client.Claim{Offset: 1}}, "0:1\t\n"},
		{"json", true, false, plain, `{"claim":"3:42:2","shard":3,"offset":42,"attempts":2,"payload":"hi"}` + "\n"},
		{"json in full", true, true, full, `{"claim":"0:7:1","shard":0,"offset":7,"attempts":1,"skipped_before":2,"publisher":"ada","timestamp_micros":1769860800000000,"payload_base64":"/wA="}` + "\n"},
	} {
		if got := string(appendDelivery(nil, &tc.d, tc.json, tc.tty)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	one, two := client.Claim{Offset: 17, Attempts: 1}, client.Claim{Shard: 1, Offset: 18}
	stale := &client.Error{Op: "group nack", Code: client.CodeStaleClaim, Retry: client.RetryNever, Message: "the claim ended"}
	missing := &client.Error{Op: "group redrive", Code: client.CodeNotFound, Retry: client.RetryNever, Message: "17 is not on the list"}
	for _, tc := range []struct {
		name            string
		json            bool
		claims          []client.Claim
		outcomes        []error
		out, errs, hint string
		exit            int
	}{
		{"all done", false, []client.Claim{one, two}, []error{nil, nil}, "0:17:1 acked\n1:18 acked\n", "", "", ExitOK},
		{"all done, json", true, []client.Claim{one, two}, []error{nil, nil}, `{"claim":"0:17:1","done":"acked"}` + "\n" + `{"claim":"1:18","done":"acked"}` + "\n", "", "", ExitOK},
		{"one refused", false, []client.Claim{one}, []error{stale}, "", "claim 0:17:1: group nack: the claim ended (stale_claim)", "shows who holds what", ExitRefused},
		{
			"one of two refused", false, []client.Claim{one, two}, []error{stale, nil}, "0:17:1 not acked: group nack: the claim ended (stale_claim)\n1:18 acked\n",
			"claim 0:17:1: group nack: the claim ended (stale_claim)", "shows who holds what", ExitRefused,
		},
		{
			"both refused, json", true, []client.Claim{one, two}, []error{stale, missing},
			`{"claim":"0:17:1","error":"group nack: the claim ended (stale_claim)","code":"stale_claim"}` + "\n" + `{"claim":"1:18","error":"group redrive: 17 is not on the list (not_found)","code":"not_found"}` + "\n",
			"2 of 2 claims failed, the first: claim 0:17:1: group nack: the claim ended (stale_claim)", "shows who holds what", ExitRefused,
		},
		{"one missing", false, []client.Claim{two}, []error{missing}, "", "claim 1:18: group redrive: 17 is not on the list (not_found)", "", ExitNotFound},
		{"interrupted before the second", false, []client.Claim{one, two}, []error{errInterrupted}, "0:17:1 not acked: interrupted\n", "2 of 2", "", ExitOther},
	} {
		ta := newTestApp(t, nil)
		ta.flags.json = tc.json
		err := ta.tellOutcomes(tc.claims, tc.outcomes, "acked")
		if got := ta.out.String(); got != tc.out {
			t.Errorf("%s: printed %q, want %q", tc.name, got, tc.out)
		}
		if err == nil {
			if tc.exit != ExitOK {
				t.Errorf("%s: no error", tc.name)
			}
			continue
		}
		told := explain(err)
		if told.Exit != tc.exit || tc.name != "interrupted before the second" && told.Error != tc.errs || !strings.Contains(told.Hint, tc.hint) || tc.hint == "" && told.Hint != "" {
			t.Errorf("%s: exit %d, %q, hint %q", tc.name, told.Exit, told.Error, told.Hint)
		}
	}
}

func TestPerClaim(t *testing.T) {
	one, two := client.Claim{Offset: 1}, client.Claim{Offset: 2}
	refused, lost := errors.New("refused"), errors.New("lost")
	named := errors.Join(&client.ClaimError{Claim: two, Err: refused})
	if got := perClaim([]client.Claim{one, two}, named); got[0] != nil || !errors.Is(got[1], refused) {
		t.Errorf("one of two: %v", got)
	}
	if got := perClaim([]client.Claim{one, two}, lost); !errors.Is(got[0], lost) || !errors.Is(got[1], lost) {
		t.Errorf("the call as a whole: %v", got)
	}
	if got := perClaim([]client.Claim{one, two}, nil); got[0] != nil || got[1] != nil {
		t.Errorf("none: %v", got)
	}
	both := errors.Join(&client.ClaimError{Claim: one, Err: lost}, &client.ClaimError{Claim: two, Err: refused})
	if got := perClaim([]client.Claim{one, two}, both); !errors.Is(got[0], lost) || !errors.Is(got[1], refused) {
		t.Errorf("both: %v", got)
	}
}

func TestConfirm(t *testing.T) {
	for _, tc := range []struct {
		name      string
		tty, json bool
		yes       bool
		answer    string
		exit      int
		asked     bool
	}{
		{"given", false, false, true, "", ExitOK, false},
		{"nobody there", false, false, false, "y\n", ExitUsage, false},
		{"yes", true, false, false, "y\n", ExitOK, true},
		{"Yes", true, false, false, " YES \n", ExitOK, true},
		{"no", true, false, false, "n\n", ExitUsage, true},
		{"return", true, false, false, "\n", ExitUsage, true},
		{"end of input", true, false, false, "", ExitUsage, true},
		{"with json nobody is asked", true, true, false, "y\n", ExitUsage, false},
	} {
		ta := newTestApp(t, nil)
		ta.Stdin, ta.StdinTTY, ta.flags.json = strings.NewReader(tc.answer), tc.tty, tc.json
		err := ta.confirm(t.Context(), tc.yes, "delete it")
		exit := ExitOK
		if err != nil {
			exit = explain(err).Exit
		}
		asked := strings.Contains(ta.errs.String(), "delete it? [y/N]")
		if exit != tc.exit || asked != tc.asked {
			t.Errorf("%s: exit %d, asked %t: %v", tc.name, exit, asked, err)
		}
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errInterrupted)
	ta := newTestApp(t, nil)
	ta.Stdin, ta.StdinTTY = blocked{}, true
	if err := ta.confirm(ended, false, "delete it"); !errors.Is(err, errInterrupted) {
		t.Errorf("an interrupt while it asks: %v", err)
	}
}

// blocked is a terminal at which nobody types.
type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }
