package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/felixlog/felix/client"
)

// whyThere says in one sentence why the cursor of a group stands where it
// stands, and, in a second, what retention took from the group. now is when the
// broker answered.
func whyThere(info *client.GroupInfo, now time.Time) string {
	first := firstHeld(info)
	why := "the cursor is at " + fmt.Sprint(first.Offset)
	if !info.HasCommitted {
		why = "nothing is finished yet"
	}
	switch first.State {
	case client.HeldAtTail:
		why = whyAtTail(info)
	case "":
		why += whyByNumbers(info)
	default:
		why += " because " + holds(info, first, now) + laterFinished(info, first.Offset)
	}
	why += "."
	if info.Trimmed > 0 {
		why += fmt.Sprintf(" Retention took %s that the group had not finished.", plural(info.Trimmed, "record"))
	}
	return why
}

// firstHeld is the record that holds the cursor; of a broker that does not
// tell, the offset of the cursor without a state.
func firstHeld(info *client.GroupInfo) client.GroupHeld {
	if info.First != nil {
		return *info.First
	}
	first := client.GroupHeld{Offset: info.Committed}
	if info.HasCommitted && info.Committed >= info.Tail {
		first.State = client.HeldAtTail
	}
	return first
}

// whyAtTail is for a group that has finished everything there is.
func whyAtTail(info *client.GroupInfo) string {
	why := fmt.Sprintf("the cursor is at %d, the end of the stream: everything before it is finished", info.Tail)
	switch {
	case info.Tail == 0:
		why = "the stream has no record yet"
	case !info.HasCommitted:
		why = fmt.Sprintf("the group begins at %d, the end of the stream, and nothing came since", info.Tail)
	}
	if beside := info.InFlight + info.Owed; beside > 0 {
		why += fmt.Sprintf("; %s from the dead letters %s in play again", plural(beside, "record"), isOrAre(beside))
	}
	return why
}

// whyByNumbers is what can be said for a broker that tells numbers alone.
func whyByNumbers(info *client.GroupInfo) string {
	return fmt.Sprintf(": of the %s behind it %s handed out and %s to be handed out again",
		plural(info.Lag(), "record"), countIs(info.InFlight), countIs(info.Owed))
}

func countIs(n uint64) string { return count(n) + " " + isOrAre(n) }

// holds says what keeps one record from being finished.
func holds(info *client.GroupInfo, h client.GroupHeld, now time.Time) string {
	record := fmt.Sprintf("record %d ", h.Offset)
	switch h.State {
	case client.HeldNotHandedOut:
		waiting := info.Tail - min(info.Tail, max(h.Offset, info.HighWater))
		if waiting <= 1 {
			return record + "waits for a worker to poll it"
		}
		return record + fmt.Sprintf("and %s more wait for a worker to poll them", count(waiting-1))
	case client.HeldClaimed:
		return record + "was handed to " + holderName(h) + ago(h.Since, now) + " for the " + nthTime(h.Attempts, info.MaxAttempts) +
			" and is not finished; " + claimEnds(info, h, now)
	case client.HeldDelayed:
		out := record + "was handed back" + ago(h.Since, now) + " by " + holderName(h)
		if left := h.Until.Sub(now); h.Until.IsZero() || left <= 0 {
			return out + "; the next poll gets it, for the " + nthTime(h.Attempts+1, info.MaxAttempts)
		}
		return out + "; it is handed out again" + in(h.Until, now) + ", for the " + nthTime(h.Attempts+1, info.MaxAttempts)
	case client.HeldOwed:
		return record + cameBack(info, h) + nextPoll(h)
	case client.HeldDeadLettering:
		return record + "was given up after the " + nthTime(h.Attempts, info.MaxAttempts) + " and is just being written to the dead letters"
	}
	return record + "is " + strings.ReplaceAll(string(h.State), "_", " ")
}

// claimEnds says when the claim of a record ends, and what then.
func claimEnds(info *client.GroupInfo, h client.GroupHeld, now time.Time) string {
	last := info.MaxAttempts > 0 && h.Attempts >= info.MaxAttempts
	switch {
	case h.Reserved:
		return "it is set aside for the next poll of that worker"
	case h.Until.IsZero():
		return "its claim stands"
	case !h.Until.After(now) && last:
		return "its claim has ended, and it goes to the dead letters"
	case !h.Until.After(now):
		return "its claim has ended, and the next poll gets it"
	case last:
		return "its claim ends" + in(h.Until, now) + ", and then it goes to the dead letters"
	}
	return "its claim ends" + in(h.Until, now)
}

// cameBack says why a record has to be handed out again.
func cameBack(info *client.GroupInfo, h client.GroupHeld) string {
	switch {
	case h.Redriven && h.Attempts == 0:
		return "was put back in play from the dead letters"
	case h.Attempts == 0:
		return "was not handed out to the end"
	}
	return "came back after the " + nthTime(h.Attempts, info.MaxAttempts)
}

func nextPoll(h client.GroupHeld) string {
	if h.Reserved {
		return " and is set aside for the next poll of " + holderName(h)
	}
	return " and waits for a worker to poll it"
}

// laterFinished adds how many records behind the one that holds the cursor
// count as finished as soon as that is.
func laterFinished(info *client.GroupInfo, offset uint64) string {
	ahead := info.HighWater - min(info.HighWater, offset)
	if open := info.InFlight + info.Owed; ahead > open {
		return fmt.Sprintf(" (%s behind it %s finished already)", plural(ahead-open, "record"), isOrAre(ahead-open))
	}
	return ""
}

// holderName names who was handed a record.
func holderName(h client.GroupHeld) string {
	name := h.Consumer
	if name == "" {
		name = "an anonymous worker"
	}
	if h.Connection != 0 {
		name += fmt.Sprintf(" (connection %d)", h.Connection)
	}
	return name
}

// nthTime is "3rd of 5 times", or "3rd time" where no limit is known.
func nthTime(n, of uint32) string {
	if of == 0 {
		return ordinal(n) + " time"
	}
	return fmt.Sprintf("%s of %s", ordinal(n), plural(uint64(of), "time"))
}

func ordinal(n uint32) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// ago is how long before now something was, with a blank before it; nothing
// for no time.
func ago(then, now time.Time) string {
	if then.IsZero() {
		return ""
	}
	return " " + span(now.Sub(then)) + " ago"
}

// in is how long after now something will be, with a blank before it.
func in(then, now time.Time) string { return " in " + span(then.Sub(now)) }

// span writes a length of time in the two units that tell enough.
func span(d time.Duration) string {
	// Clocks of two machines differ: what should be past may seem to come.
	seconds := int64(math.Round(max(d, 0).Seconds()))
	unit := func(n int64, big string, rest int64, small string) string {
		if rest == 0 {
			return fmt.Sprintf("%d %s", n, big)
		}
		return fmt.Sprintf("%d %s %d %s", n, big, rest, small)
	}
	const minute, hour, day = 60, 3600, 86400
	switch {
	case seconds < 2*minute:
		return fmt.Sprintf("%d s", seconds)
	case seconds < hour:
		return unit(seconds/minute, "min", seconds%minute, "s")
	case seconds < day:
		return unit(seconds/hour, "h", seconds%hour/minute, "min")
	}
	return unit(seconds/day, "d", seconds%day/hour, "h")
}
