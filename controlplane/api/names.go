package api

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of fields (control plane 3).
const (
	maxShards      = 1024
	maxCopies      = 32
	maxDisplayName = 1024 // bytes
	maxRegion      = 253  // bytes
)

// name refuses what cannot be the name of a kind.
func (a *API) name(kind, name string) error {
	if err := a.o.ValidateName(kind, name); err != nil {
		return invalid("%s: %v", kind, err)
	}
	return nil
}

// displayName refuses what no line can show.
func displayName(s string) error {
	if problem := textProblem(s, maxDisplayName); problem != "" {
		return invalid("display_name: %s", problem)
	}
	return nil
}

// textProblem says why a text for people cannot be stored.
func textProblem(s string, most int) string {
	switch {
	case len(s) > most:
		return fmt.Sprintf("longer than %d bytes", most)
	case !utf8.ValidString(s):
		return "not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "contains a control character"
	}
	return ""
}

// regionProblem says why a string names no region.
func regionProblem(s string) string {
	if strings.TrimSpace(s) == "" {
		return "blank"
	}
	return textProblem(s, maxRegion)
}

// newUID makes the mark by which brokers tell a stream or cache from another of
// the same name.
func (a *API) newUID() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(a.random, b[:]); err != nil {
		return "", fmt.Errorf("make a uid: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
