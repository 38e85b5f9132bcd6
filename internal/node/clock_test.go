package node

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
)

// Each step of the clock is one line, as the document of the operators says it.
func TestClockStepsAreLogged(t *testing.T) {
	page, err := os.ReadFile("../../docs/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	synctest.Test(t, func(t *testing.T) {
		clock, said := new(stepped.Clock), new(bytes.Buffer)
		n := &Node{clock: clock, log: slog.New(slog.NewJSONHandler(said, nil))}
		n.watchClock()
		for _, step := range []struct {
			by   time.Duration
			says string
		}{{time.Hour, "1h0m0s"}, {-time.Hour, "1h0m0s"}, {87_600 * time.Hour, "87600h0m0s"}, {-time.Second, "1s"}, {999 * time.Millisecond, ""}} {
			said.Reset()
			clock.Step(step.by)
			time.Sleep(time.Minute)
			synctest.Wait()
			if step.says == "" {
				if said.Len() > 0 {
					t.Errorf("a step of %v: %s", step.by, said)
				}
				continue
			}
			var line struct{ Level, Msg, By, Clock string }
			if err := json.Unmarshal(said.Bytes(), &line); err != nil {
				t.Errorf("a step of %v is not one line: %v\n%s", step.by, err, said)
				continue
			}
			at, err := time.Parse(time.RFC3339, line.Clock)
			if line.Level != "WARN" || line.By != step.says || err != nil || at.Sub(time.Now().Add(clock.Off())).Abs() > time.Minute {
				t.Errorf("a step of %v is told as %+v", step.by, line)
			}
			if !strings.Contains(line.Msg, map[bool]string{true: "forward", false: "back"}[step.by > 0]) || !strings.Contains(text, "`"+line.Msg+"`") {
				t.Errorf("a step of %v is %q, which the document does not say", step.by, line.Msg)
			}
		}
		n.steps.Stop()
	})
}
