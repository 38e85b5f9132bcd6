package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/felixlog/felix/client"
)

// What becomes of a record that a worker took.
const (
	resultAcked        = "acked"
	resultHandedBack   = "handed_back"
	resultDeadLettered = "dead_lettered"
	resultLost         = "lost"
)

// A workResult is what became of a record, as --json prints it.
type workResult struct {
	Kind     string `json:"kind"` // record
	Claim    string `json:"claim"`
	Shard    uint32 `json:"shard"`
	Offset   uint64 `json:"offset"`
	Attempts uint32 `json:"attempts"`
	Result   string `json:"result"`
	// Status is what the command exited with, -1 when it was killed.
	Status  int     `json:"status"`
	Seconds float64 `json:"seconds"`
	// DelayMS is how long a record is kept back that was handed back.
	DelayMS int64  `json:"delay_ms,omitempty"`
	Error   string `json:"error,omitempty"`

	lost bool // the claim, not only the connection
}

func newWorkResult(c client.Claim, what string, run runResult, delay time.Duration, err error) workResult {
	r := workResult{
		Kind: "record", Claim: formatClaim(c), Shard: c.Shard, Offset: c.Offset, Attempts: c.Attempts, Result: what,
		Status: run.Status, Seconds: run.took.Seconds(), DelayMS: delay.Milliseconds(),
	}
	if err != nil {
		r.Error = err.Error()
		r.lost = isType[*client.ClaimLostError](err) || errors.Is(err, client.ErrStaleClaim)
	}
	return r
}

// sentence is a result for a person, "" where there is nothing to say.
func (r *workResult) sentence() string {
	switch r.Result {
	case resultAcked:
		return ""
	case resultHandedBack:
		again := "to be handed out again at once"
		if r.DelayMS > 0 {
			again = "to be handed out again in " + elapsed(time.Duration(r.DelayMS)*time.Millisecond)
		}
		return fmt.Sprintf("%s: %s; handed back, %s", r.Claim, r.Error, again)
	case resultDeadLettered:
		return fmt.Sprintf("%s: %s; given up, it is a dead letter now", r.Claim, r.Error)
	}
	if r.lost {
		return fmt.Sprintf("%s: the claim was lost, and somebody else gets the record: %s", r.Claim, r.Error)
	}
	return fmt.Sprintf("%s: the broker could not be told (%s); the record is handed out again", r.Claim, r.Error)
}

// A workTally counts what became of the records of a worker.
type workTally struct {
	acked, handedBack, deadLettered, lost uint64
	// returned counts the records whose command never began.
	returned uint64
}

func (t *workTally) count(what string) {
	switch what {
	case resultAcked:
		t.acked++
	case resultHandedBack:
		t.handedBack++
	case resultDeadLettered:
		t.deadLettered++
	default:
		t.lost++
	}
}

// worked is the number of records whose command ran.
func (t *workTally) worked() uint64 { return t.acked + t.handedBack + t.deadLettered + t.lost }

// sentence sums up for a person.
func (t *workTally) sentence(label string, took time.Duration) string {
	var parts []string
	add := func(n uint64, what string) {
		if n > 0 {
			parts = append(parts, count(n)+" "+what)
		}
	}
	add(t.acked, "finished")
	add(t.handedBack, "handed back")
	add(t.deadLettered, "given up")
	add(t.lost, "lost")
	line := fmt.Sprintf("worked on %s of group %s in %s", plural(t.worked(), "record"), label, elapsed(took))
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if t.returned > 0 {
		line += fmt.Sprintf("; %s handed back untouched", count(t.returned))
	}
	return line
}

// workSummary is the last line of "felix work --json".
type workSummary struct {
	Kind         string  `json:"kind"` // summary
	Stream       string  `json:"stream"`
	Group        string  `json:"group"`
	Worked       uint64  `json:"worked"`
	Acked        uint64  `json:"acked"`
	HandedBack   uint64  `json:"handed_back"`
	DeadLettered uint64  `json:"dead_lettered"`
	Lost         uint64  `json:"lost"`
	Returned     uint64  `json:"returned"` // their command never began
	Seconds      float64 `json:"seconds"`
}

func (t *workTally) summary(g *groupAt, took time.Duration) workSummary {
	return workSummary{
		Kind: "summary", Stream: g.stream, Group: g.name, Worked: t.worked(), Acked: t.acked, HandedBack: t.handedBack,
		DeadLettered: t.deadLettered, Lost: t.lost, Returned: t.returned, Seconds: took.Seconds(),
	}
}

// A workTrouble says that a shard cannot be polled just now, or can again.
type workTrouble struct {
	Kind  string `json:"kind"` // trouble, recovered
	Shard uint32 `json:"shard"`
	Error string `json:"error,omitempty"`
}
