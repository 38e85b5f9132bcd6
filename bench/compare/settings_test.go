package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/schedule"
)

func TestSettingsDefaults(t *testing.T) {
	s, err := parseSettings(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if s.rounds != 5 || s.phases.Measure != 3*time.Second || s.phases.Warmup != time.Second || len(s.modes) != 2 || s.json || s.check {
		t.Errorf("defaults are %+v", s)
	}
	for _, r := range s.rows {
		if r.optional {
			t.Errorf("optional row %s is measured by default", r.ID)
		}
	}
}

func TestSettingsAreRead(t *testing.T) {
	s, err := parseSettings(strings.Fields("-rounds 7 -seconds 0.5 -warmup 0 -mode p -rows publish-1k,lone-* -felix /x/felix -json -check"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if s.rounds != 7 || s.phases.Measure != time.Second/2 || s.phases.Warmup != 0 || s.felix != "/x/felix" || !s.json || !s.check {
		t.Errorf("settings are %+v", s)
	}
	if len(s.modes) != 1 || s.modes[0] != schedule.Pinned {
		t.Errorf("modes are %v", s.modes)
	}
	if got := ids(s.rows); got != "publish-1k lone-publish lone-publish-poll" {
		t.Errorf("rows are %s", got)
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-rounds 0":       "-rounds 0 is not between 1 and 1000",
		"-rounds -3":      "-rounds -3",
		"-rounds 1001":    "-rounds 1001",
		"-rounds five":    "invalid value",
		"-seconds 0":      "-seconds 0 is not between",
		"-seconds 601":    "-seconds 601",
		"-seconds NaN":    "-seconds NaN",
		"-warmup -1":      "-warmup -1",
		"-settle -1":      "-settle -1",
		"-mode X":         `mode "X"`,
		"-mode U,U":       "given twice",
		"-rows nothing":   `no row matches "nothing"`,
		"-rows publish-[": "syntax error in pattern",
		"publish-1k":      `unexpected argument "publish-1k"`,
		"-verbose":        "not defined",
	} {
		if _, err := parseSettings(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: err = %v, want %q in it", args, err, want)
		}
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	var b strings.Builder
	if _, err := parseSettings([]string{"-help"}, &b); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("err = %v", err)
	}
	for _, name := range []string{"-rows", "-rounds", "-seconds", "-warmup", "-mode", "-settle", "-felix", "-json", "-check", "-list"} {
		if !strings.Contains(b.String(), name) {
			t.Errorf("help does not name %s", name)
		}
	}
}

func ids(rows []row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}
