package raft

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A libraryLog writes what the Raft library has to say to a slog.Logger, one
// level lower: what it calls an error is a peer that cannot be reached, which a
// group is made for, and what it calls a warning is an election. Its chatter
// about the rest is ours at the level debug, and so is what it said a moment ago:
// of a peer that is away it speaks several times a second.
type libraryLog struct {
	to   *slog.Logger
	name string
	args []any
	said *said
}

func newLibraryLog(to *slog.Logger) hclog.Logger {
	return &libraryLog{to: to.With("part", "raft"), said: &said{at: make(map[string]time.Time)}}
}

func level(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelWarn
	case hclog.Warn:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// said remembers when the library's messages were told, of which there are few.
type said struct {
	mu sync.Mutex
	at map[string]time.Time
}

// The bounds of said.
const (
	sayAgainAfter = 10 * time.Second
	mostSaid      = 256
)

// lately says whether a message was told a moment ago, and remembers it.
func (s *said) lately(msg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.at[msg]) < sayAgainAfter {
		return true
	}
	if len(s.at) >= mostSaid {
		clear(s.at)
	}
	s.at[msg] = now
	return false
}

func (l *libraryLog) Log(lv hclog.Level, msg string, args ...any) {
	at := level(lv)
	if at > slog.LevelDebug && l.said.lately(msg) {
		at = slog.LevelDebug
	}
	if !l.to.Enabled(context.Background(), at) {
		return
	}
	l.to.Log(context.Background(), at, strings.TrimSpace(msg), plain(args)...)
}

// plain turns the library's formatted arguments into text.
func plain(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			a = f[len(f)-1]
		}
		out[i] = a
	}
	return out
}

func (l *libraryLog) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *libraryLog) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *libraryLog) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *libraryLog) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *libraryLog) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *libraryLog) enabled(lv hclog.Level) bool {
	return l.to.Enabled(context.Background(), level(lv))
}

func (l *libraryLog) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *libraryLog) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *libraryLog) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *libraryLog) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *libraryLog) IsError() bool { return l.enabled(hclog.Error) }

func (l *libraryLog) ImpliedArgs() []any { return l.args }
func (l *libraryLog) Name() string       { return l.name }

func (l *libraryLog) With(args ...any) hclog.Logger {
	return &libraryLog{to: l.to.With(plain(args)...), name: l.name, args: append(l.args[:len(l.args):len(l.args)], args...), said: l.said}
}

func (l *libraryLog) Named(name string) hclog.Logger {
	return &libraryLog{to: l.to, name: strings.TrimPrefix(l.name+"."+name, "."), args: l.args, said: l.said}
}

func (l *libraryLog) ResetNamed(name string) hclog.Logger {
	return &libraryLog{to: l.to, name: name, args: l.args, said: l.said}
}

func (l *libraryLog) SetLevel(hclog.Level) {} // the level is that of the slog.Logger
func (l *libraryLog) GetLevel() hclog.Level {
	if l.IsDebug() {
		return hclog.Debug
	}
	return hclog.Warn
}

func (l *libraryLog) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.to.Handler(), slog.LevelDebug)
}

func (l *libraryLog) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}
