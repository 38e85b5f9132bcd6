package config

import (
	"fmt"
	"strconv"
	"time"
)

// optionalSize is a number of bytes that may be left unset, which is 0 in the
// field; a 0 that is written is refused, because it could mean both nothing
// and everything.
type optionalSize struct {
	p        *int
	min, max int
}

func (v optionalSize) set(text string) error {
	if text == "" {
		*v.p = 0
		return nil
	}
	return sizeValue(v).set(text)
}

func (v optionalSize) text() string {
	if *v.p == 0 {
		return ""
	}
	return strconv.Itoa(*v.p)
}

func (v optionalSize) allowed() string {
	return sizeValue(v).allowed() + ", or nothing"
}

// optionalSeconds is a time in seconds that may be left unset, like
// [optionalSize].
type optionalSeconds struct{ p *time.Duration }

// maxAge bounds ages in the log: a century.
const maxAge = 36500 * 24 * time.Hour

func (v optionalSeconds) duration() durationValue {
	return durationValue{p: v.p, unit: time.Second, min: time.Second, max: maxAge}
}

func (v optionalSeconds) set(text string) error {
	if text == "" {
		*v.p = 0
		return nil
	}
	return v.duration().set(text)
}

func (v optionalSeconds) text() string {
	if *v.p == 0 {
		return ""
	}
	return v.duration().text()
}

func (v optionalSeconds) allowed() string {
	return fmt.Sprintf("%s, or nothing", v.duration().allowed())
}
