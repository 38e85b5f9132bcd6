package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// A value reads and writes one field of a [Config].
type value interface {
	set(text string) error // errors say nothing that allowed does not
	text() string
	allowed() string
}

var errValue = errors.New("not allowed")

// A number is a value that can be compared with others.
type number interface {
	value
	number() int64
}

// textValue is any text.
type textValue struct {
	p    *string
	what string
}

func (v textValue) set(text string) error { *v.p = text; return nil }
func (v textValue) text() string          { return *v.p }
func (v textValue) allowed() string       { return v.what }

// addressValue is host:port; the host may be empty.
type addressValue struct{ p *string }

func (v addressValue) set(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return errValue
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errValue
	}
	*v.p = text
	return nil
}
func (v addressValue) text() string    { return *v.p }
func (v addressValue) allowed() string { return "host:port, with a port from 0 to 65535" }

type boolValue struct{ p *bool }

func (v boolValue) set(text string) error {
	switch strings.ToLower(text) {
	case "1", "true", "yes":
		*v.p = true
	case "0", "false", "no":
		*v.p = false
	default:
		return errValue
	}
	return nil
}
func (v boolValue) text() string    { return strconv.FormatBool(*v.p) }
func (v boolValue) allowed() string { return "true, yes or 1; false, no or 0" }

// countValue is a whole number within bounds.
type countValue struct {
	p        *int
	min, max int
}

func (v countValue) set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < v.min || n > v.max {
		return errValue
	}
	*v.p = n
	return nil
}
func (v countValue) text() string  { return strconv.Itoa(*v.p) }
func (v countValue) number() int64 { return int64(*v.p) }
func (v countValue) allowed() string {
	return fmt.Sprintf("a whole number from %d to %d", v.min, v.max)
}

// rateValue is a whole number per second without an upper bound.
type rateValue struct{ p *uint64 }

func (v rateValue) set(text string) error {
	n, err := parseBytes(text)
	if err != nil {
		return errValue
	}
	*v.p = uint64(n)
	return nil
}
func (v rateValue) text() string    { return strconv.FormatUint(*v.p, 10) }
func (v rateValue) allowed() string { return "a whole number, 0 for no limit" }

// sizeValue is a number of bytes within bounds, plain or with a unit.
type sizeValue struct {
	p        *int
	min, max int
}

func (v sizeValue) set(text string) error {
	n, err := parseBytes(text)
	if err != nil || n < int64(v.min) || n > int64(v.max) {
		return errValue
	}
	*v.p = int(n)
	return nil
}
func (v sizeValue) text() string  { return strconv.Itoa(*v.p) }
func (v sizeValue) number() int64 { return int64(*v.p) }
func (v sizeValue) allowed() string {
	return fmt.Sprintf("bytes from %s to %s, plain or as in 16MiB", formatBytes(v.min), formatBytes(v.max))
}

var byteUnits = []struct {
	suffix string
	factor int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// parseBytes reads a plain count or one with a unit: 16777216, 16MiB, 16MB.
func parseBytes(text string) (int64, error) {
	factor := int64(1)
	for _, unit := range byteUnits {
		if digits, found := strings.CutSuffix(text, unit.suffix); found {
			text, factor = strings.TrimSpace(digits), unit.factor
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, errValue
	}
	return n * factor, nil
}

// formatBytes writes a count with the largest binary unit that divides it.
func formatBytes(n int) string {
	for _, unit := range []struct {
		suffix string
		factor int
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n != 0 && n%unit.factor == 0 {
			return strconv.Itoa(n/unit.factor) + unit.suffix
		}
	}
	return strconv.Itoa(n)
}

// durationValue is a time in whole units, plain or as Go writes durations.
type durationValue struct {
	p        *time.Duration
	unit     time.Duration
	min, max time.Duration
	off      bool // 0 is allowed beside min..max, and turns the thing off
}

func (v durationValue) set(text string) error {
	d, err := v.parse(text)
	if err != nil || d%v.unit != 0 {
		return errValue
	}
	if !(v.off && d == 0) && (d < v.min || d > v.max) {
		return errValue
	}
	*v.p = d
	return nil
}

func (v durationValue) parse(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.ParseDuration(text)
	}
	if n < 0 || n > int64(v.max/v.unit) {
		return 0, errValue
	}
	return time.Duration(n) * v.unit, nil
}

func (v durationValue) text() string  { return strconv.FormatInt(int64(*v.p/v.unit), 10) }
func (v durationValue) number() int64 { return int64(*v.p / v.unit) }
func (v durationValue) allowed() string {
	name, example := "milliseconds", 250*v.unit
	switch v.unit {
	case time.Microsecond:
		name = "microseconds"
	case time.Second:
		name, example = "seconds", 90*v.unit
	}
	phrase := fmt.Sprintf("%s from %d to %d, plain or as in %s", name, v.min/v.unit, v.max/v.unit, example)
	if v.off {
		phrase += "; 0 turns it off"
	}
	return phrase
}

// oneOf is one of a few words.
type oneOf[T ~string] struct {
	p     *T
	words []T
}

func (v oneOf[T]) set(text string) error {
	for _, word := range v.words {
		if string(word) == text {
			*v.p = word
			return nil
		}
	}
	return errValue
}
func (v oneOf[T]) text() string { return string(*v.p) }
func (v oneOf[T]) allowed() string {
	all := make([]string, len(v.words))
	for i, word := range v.words {
		all[i] = string(word)
	}
	return "one of " + strings.Join(all, ", ")
}
