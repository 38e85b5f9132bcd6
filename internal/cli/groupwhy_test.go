package cli

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/client"
)

var describedAt = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return describedAt.Add(-d) }
func after(d time.Duration) time.Time  { return describedAt.Add(d) }

func TestWhyThere(t *testing.T) {
	// at is a group whose cursor is at 17 of 42, held there by first.
	at := func(first client.GroupHeld, change ...func(*client.GroupInfo)) client.GroupInfo {
		first.Offset = 17
		info := client.GroupInfo{
			HasCommitted: true, Committed: 17, Tail: 42, HighWater: 18, HasHighWater: true, MaxAttempts: 5, InFlight: 1, First: &first,
		}
		for _, c := range change {
			c(&info)
		}
		return info
	}
	worker := client.GroupHeld{State: client.HeldClaimed, Attempts: 3, Consumer: "worker-2", Connection: 8, Since: before(41 * time.Second), Until: after(19 * time.Second)}
	with := func(h client.GroupHeld, change func(*client.GroupHeld)) client.GroupHeld {
		change(&h)
		return h
	}
	for _, tc := range []struct {
		name string
		info client.GroupInfo
		want string
	}{
		{"claimed", at(worker), "the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 3rd of 5 times and is not finished; its claim ends in 19 s."},
		{
			"claimed for the last time", at(with(worker, func(h *client.GroupHeld) { h.Attempts = 5 })),
			"the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 5th of 5 times and is not finished; its claim ends in 19 s, and then it goes to the dead letters.",
		},
		{
			"claimed anonymously, limit and times unknown", at(client.GroupHeld{State: client.HeldClaimed, Attempts: 1}, func(i *client.GroupInfo) { i.MaxAttempts = 0 }),
			"the cursor is at 17 because record 17 was handed to an anonymous worker for the 1st time and is not finished; its claim stands.",
		},
		{
			"claim over", at(with(worker, func(h *client.GroupHeld) { h.Until = before(time.Second) })),
			"the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 3rd of 5 times and is not finished; its claim has ended, and the next poll gets it.",
		},
		{
			"last claim over", at(with(worker, func(h *client.GroupHeld) { h.Until, h.Attempts = before(time.Second), 5 })),
			"the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 5th of 5 times and is not finished; its claim has ended, and it goes to the dead letters.",
		},
		{
			"claimed, set aside", at(with(worker, func(h *client.GroupHeld) { h.Reserved = true })),
			"the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 3rd of 5 times and is not finished; it is set aside for the next poll of that worker.",
		},
		{
			"much behind it finished", at(worker, func(i *client.GroupInfo) { i.HighWater, i.InFlight, i.Owed = 40, 2, 1 }),
			"the cursor is at 17 because record 17 was handed to worker-2 (connection 8) 41 s ago for the 3rd of 5 times and is not finished; its claim ends in 19 s (20 records behind it are finished already).",
		},
		{
			"delayed", at(client.GroupHeld{State: client.HeldDelayed, Attempts: 2, Consumer: "w", Since: before(5 * time.Second), Until: after(10 * time.Minute)}),
			"the cursor is at 17 because record 17 was handed back 5 s ago by w; it is handed out again in 10 min, for the 3rd of 5 times.",
		},
		{
			"delay over", at(client.GroupHeld{State: client.HeldDelayed, Attempts: 2, Consumer: "w", Until: before(0)}),
			"the cursor is at 17 because record 17 was handed back by w; the next poll gets it, for the 3rd of 5 times.",
		},
		{
			"owed", at(client.GroupHeld{State: client.HeldOwed, Attempts: 1}),
			"the cursor is at 17 because record 17 came back after the 1st of 5 times and waits for a worker to poll it.",
		},
		{
			"owed and set aside", at(client.GroupHeld{State: client.HeldOwed, Attempts: 2, Consumer: "w", Connection: 9, Reserved: true}),
			"the cursor is at 17 because record 17 came back after the 2nd of 5 times and is set aside for the next poll of w (connection 9).",
		},
		{
			"redriven", at(client.GroupHeld{State: client.HeldOwed, Redriven: true}),
			"the cursor is at 17 because record 17 was put back in play from the dead letters and waits for a worker to poll it.",
		},
		{
			"an answer that was lost", at(client.GroupHeld{State: client.HeldOwed}),
			"the cursor is at 17 because record 17 was not handed out to the end and waits for a worker to poll it.",
		},
		{
			"being given up", at(client.GroupHeld{State: client.HeldDeadLettering, Attempts: 5}),
			"the cursor is at 17 because record 17 was given up after the 5th of 5 times and is just being written to the dead letters.",
		},
		{
			"not handed out", at(client.GroupHeld{State: client.HeldNotHandedOut}, func(i *client.GroupInfo) { i.InFlight, i.HighWater = 0, 17 }),
			"the cursor is at 17 because record 17 and 24 more wait for a worker to poll them.",
		},
		{
			"not handed out, the last", at(client.GroupHeld{State: client.HeldNotHandedOut}, func(i *client.GroupInfo) { i.InFlight, i.HighWater, i.Tail = 0, 17, 18 }),
			"the cursor is at 17 because record 17 waits for a worker to poll it.",
		},
		{
			"no cursor", client.GroupInfo{Tail: 2, First: &client.GroupHeld{State: client.HeldNotHandedOut}},
			"nothing is finished yet because record 0 and 1 more wait for a worker to poll them.",
		},
		{"a state to come", at(client.GroupHeld{State: "on_holiday"}), "the cursor is at 17 because record 17 is on holiday."},
		{
			"at the end", client.GroupInfo{HasCommitted: true, Committed: 42, Tail: 42, First: &client.GroupHeld{Offset: 42, State: client.HeldAtTail}},
			"the cursor is at 42, the end of the stream: everything before it is finished.",
		},
		{
			"at the end, one redriven", client.GroupInfo{HasCommitted: true, Committed: 42, Tail: 42, Owed: 1, First: &client.GroupHeld{Offset: 42, State: client.HeldAtTail}},
			"the cursor is at 42, the end of the stream: everything before it is finished; 1 record from the dead letters is in play again.",
		},
		{"an empty stream", client.GroupInfo{First: &client.GroupHeld{State: client.HeldAtTail}}, "the stream has no record yet."},
		{
			"made at the end", client.GroupInfo{Tail: 42, First: &client.GroupHeld{Offset: 42, State: client.HeldAtTail}},
			"the group begins at 42, the end of the stream, and nothing came since.",
		},
		{
			"trimmed", client.GroupInfo{HasCommitted: true, Committed: 42, Tail: 42, Trimmed: 1200, First: &client.GroupHeld{Offset: 42, State: client.HeldAtTail}},
			"the cursor is at 42, the end of the stream: everything before it is finished. Retention took 1,200 records that the group had not finished.",
		},
		{
			"a broker that tells numbers alone", client.GroupInfo{HasCommitted: true, Committed: 17, Tail: 42, InFlight: 3, Owed: 1},
			"the cursor is at 17: of the 25 records behind it 3 are handed out and 1 is to be handed out again.",
		},
		{"numbers alone, at the end", client.GroupInfo{HasCommitted: true, Committed: 42, Tail: 42}, "the cursor is at 42, the end of the stream: everything before it is finished."},
		{"numbers alone, no cursor", client.GroupInfo{Tail: 2}, "nothing is finished yet: of the 2 records behind it 0 are handed out and 0 are to be handed out again."},
	} {
		if got := whyThere(&tc.info, describedAt); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

// Whatever a broker says of a group, there is one line of text about it.
func TestWhyThereIsALine(t *testing.T) {
	states := []client.HeldState{client.HeldClaimed, client.HeldDelayed, client.HeldOwed, client.HeldDeadLettering, client.HeldNotHandedOut, client.HeldAtTail, "other"}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Uint64Range(0, 50), rapid.Uint64())
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			if rapid.Bool().Draw(t, "none") {
				return time.Time{}
			}
			return after(time.Duration(rapid.Int64().Draw(t, "at")))
		})
		info := client.GroupInfo{
			Committed: number.Draw(t, "committed"), HasCommitted: rapid.Bool().Draw(t, "has"), Tail: number.Draw(t, "tail"),
			InFlight: number.Draw(t, "in flight"), Owed: number.Draw(t, "owed"), HighWater: number.Draw(t, "high"), Trimmed: number.Draw(t, "trimmed"),
			MaxAttempts: rapid.Uint32Range(0, 20).Draw(t, "max"),
		}
		if rapid.Bool().Draw(t, "first") {
			info.First = &client.GroupHeld{
				Offset: number.Draw(t, "offset"), State: rapid.SampledFrom(states).Draw(t, "state"), Attempts: rapid.Uint32().Draw(t, "attempts"),
				Consumer: rapid.SampledFrom([]string{"", "w"}).Draw(t, "consumer"), Since: moment.Draw(t, "since"), Until: moment.Draw(t, "until"),
				Reserved: rapid.Bool().Draw(t, "reserved"), Redriven: rapid.Bool().Draw(t, "redriven"),
			}
		}
		why := whyThere(&info, describedAt)
		if !strings.HasSuffix(why, ".") || strings.ContainsAny(why, "\n") || strings.Contains(why, "  ") || strings.Contains(why, "-") {
			t.Fatalf("%+v: %q", info, why)
		}
	})
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                    "0 s",
		400 * time.Millisecond:          "0 s",
		time.Second:                     "1 s",
		119 * time.Second:               "119 s",
		120 * time.Second:               "2 min",
		200 * time.Second:               "3 min 20 s",
		time.Hour:                       "1 h",
		3*time.Hour + 5*time.Minute:     "3 h 5 min",
		24 * time.Hour:                  "1 d",
		51*time.Hour + 30*time.Minute:   "2 d 3 h",
		time.Duration(1<<63 - 1):        "106751 d 23 h",
		59*time.Minute + 59*time.Second: "59 min 59 s",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[uint32]string{0: "0th", 1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th", 113: "113th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
