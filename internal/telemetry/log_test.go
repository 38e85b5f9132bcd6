package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestLogLevels(t *testing.T) {
	for _, tt := range []struct {
		filter string
		want   string // first letters of what passes: trace, debug, info, warn, error; main then session then quic
	}{
		{"info", "iwe iwe iwe"},
		{"INFO", "iwe iwe iwe"},
		{"trace", "tdiwe tdiwe tdiwe"},
		{"off", "  "},
		{"warn,session=debug", "we diwe we"},
		{"session=debug,error", "e diwe e"},
		{"session=off, quic=trace", "iwe  tdiwe"},
		{"session=error,session=debug", "iwe diwe iwe"},
	} {
		var out bytes.Buffer
		base, err := NewLogger(&out, tt.filter, "text")
		if err != nil {
			t.Errorf("%q: %v", tt.filter, err)
			continue
		}
		var passed []string
		for _, logger := range []*slog.Logger{base, Module(base.With("a", 1), "session"), Module(base, "quic").WithGroup("g").With(ModuleKey, "session")} {
			letters := ""
			for _, level := range []string{"trace", "debug", "info", "warn", "error"} {
				out.Reset()
				logger.Log(t.Context(), levels[level], "x")
				if out.Len() > 0 {
					letters += level[:1]
				}
				if out.Len() > 0 && !strings.Contains(out.String(), "level="+strings.ToUpper(level)) {
					t.Errorf("%s line is %s", level, out.String())
				}
			}
			passed = append(passed, letters)
		}
		if got := strings.Join(passed, " "); got != tt.want {
			t.Errorf("%q passes %q, want %q", tt.filter, got, tt.want)
		}
	}
}

func TestBadLogSettings(t *testing.T) {
	for _, tt := range []struct{ filter, format, says string }{
		{"loud", "text", `"loud"`}, {"", "text", "want trace"}, {"session=loud", "text", `"loud"`}, {"info,warn", "text", "two levels"},
		{"=info", "text", "no module"}, {"session=", "text", "want trace"}, {"info", "xml", "want text or json"}, {"info", "", "want text or json"},
	} {
		if _, err := NewLogger(&bytes.Buffer{}, tt.filter, tt.format); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q, %q: %v, want an error that says %q", tt.filter, tt.format, err, tt.says)
		}
	}
}

// TestNoNameCanForgeALine logs hostile text in every place an attribute can
// stand and checks that each line stays one and shows no control.
func TestNoNameCanForgeALine(t *testing.T) {
	text := rapid.StringMatching(`[a-z\x00-\x1f\x7f\x{80}-\x{9f}\x{200f}\x{202e}\x{e0001}"\\é😀]{0,12}`)
	for _, format := range []string{"text", "json"} {
		rapid.Check(t, func(t *rapid.T) {
			hostile := text.Draw(t, "hostile")
			var out bytes.Buffer
			logger, err := NewLogger(&out, "info", format)
			if err != nil {
				t.Fatal(err)
			}
			logger.With("stream", hostile).Info(hostile, "error", errors.New(hostile), slog.Group("g", "k", hostile))
			line, found := strings.CutSuffix(out.String(), "\n")
			if !found {
				t.Fatal("line does not end")
			}
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Fatalf("%U stands in the line %q", r, line)
				}
			}
			if format != "json" {
				return
			}
			var back struct{ Msg, Stream string }
			if err := json.Unmarshal([]byte(line), &back); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			if back.Msg != hostile || back.Stream != hostile {
				t.Fatalf("%q is read back as %q and %q", hostile, back.Msg, back.Stream)
			}
		})
	}
}

func TestEscaperPassesErrors(t *testing.T) {
	cause := errors.New("disk full")
	e := &escaper{w: failing{cause}}
	for _, line := range []string{"plain\n", "\x7f\n"} {
		if n, err := e.Write([]byte(line)); n != 0 || !errors.Is(err, cause) {
			t.Errorf("%q: %d, %v", line, n, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
