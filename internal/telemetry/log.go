package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// ModuleKey is the attribute by which a logger says whose lines it writes; the
// filter of [NewLogger] goes by it.
const ModuleKey = "module"

// Module returns the logger of one module: its lines carry the module's name
// and are filtered by the module's level.
func Module(logger *slog.Logger, name string) *slog.Logger { return logger.With(ModuleKey, name) }

// levelOff is above every level.
const levelOff = slog.Level(1 << 10)

var levels = map[string]slog.Level{
	"trace": slog.LevelDebug - 4,
	"debug": slog.LevelDebug,
	"info":  slog.LevelInfo,
	"warn":  slog.LevelWarn,
	"error": slog.LevelError,
	"off":   levelOff,
}

// NewLogger writes lines to w, one Write each, as format says: text or json.
// The filter is a level (trace, debug, info, warn, error, off), or a list of
// a level and module=level pairs, as in "info,session=debug". In both formats
// what is not printable, line breaks and terminal escapes among it, is written
// escaped: no name can forge or hide a line.
func NewLogger(w io.Writer, filter, format string) (*slog.Logger, error) {
	f, err := parseFilter(filter)
	if err != nil {
		return nil, err
	}
	// The wrapper filters; the inner handler lets everything pass.
	options := &slog.HandlerOptions{Level: slog.LevelDebug - 4, ReplaceAttr: nameLevels}
	var inner slog.Handler
	switch format {
	case "text":
		inner = slog.NewTextHandler(&escaper{w: w}, options)
	case "json":
		inner = slog.NewJSONHandler(&escaper{w: w}, options)
	default:
		return nil, fmt.Errorf("log format %q: want text or json", format)
	}
	return slog.New(&filtered{Handler: inner, filter: f, least: f.base}), nil
}

// nameLevels writes the level below debug by its name.
func nameLevels(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.LevelKey && len(groups) == 0 {
		if level, ok := a.Value.Any().(slog.Level); ok && level < slog.LevelDebug {
			a.Value = slog.StringValue("TRACE")
		}
	}
	return a
}

// A filter knows the least level of every module.
type filter struct {
	base    slog.Level
	modules map[string]slog.Level
}

func parseFilter(text string) (filter, error) {
	f := filter{base: slog.LevelInfo, modules: make(map[string]slog.Level)}
	hasBase := false
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		module, name, pair := strings.Cut(part, "=")
		if !pair {
			module, name = "", part
		}
		level, known := levels[strings.ToLower(name)]
		if !known {
			return filter{}, fmt.Errorf("log level %q: want trace, debug, info, warn, error or off", name)
		}
		switch {
		case !pair && hasBase:
			return filter{}, fmt.Errorf("log filter %q has two levels for everything", text)
		case !pair:
			f.base, hasBase = level, true
		case module == "":
			return filter{}, fmt.Errorf("log filter %q: %q names no module", text, part)
		default:
			f.modules[module] = level
		}
	}
	return f, nil
}

// filtered is a handler that drops lines below the level of its module.
type filtered struct {
	slog.Handler
	filter  filter
	least   slog.Level
	grouped bool // attributes no longer stand at the top
}

func (h *filtered) Enabled(_ context.Context, level slog.Level) bool { return level >= h.least }

func (h *filtered) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithAttrs(attrs)
	for _, attr := range attrs {
		if attr.Key != ModuleKey || h.grouped {
			continue
		}
		level, listed := h.filter.modules[attr.Value.String()]
		if !listed {
			level = h.filter.base
		}
		next.least = level
	}
	return &next
}

func (h *filtered) WithGroup(name string) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithGroup(name)
	next.grouped = true
	return &next
}
