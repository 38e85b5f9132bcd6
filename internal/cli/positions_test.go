package cli

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePositions(t *testing.T) {
	for text, want := range map[string]positions{
		"0":                    {},
		"42":                   {offset: 42},
		"18446744073709551615": {offset: 1<<64 - 1},
		"3:7":                  {shards: map[uint32]uint64{3: 7}},
		"0:43,1:18":            {shards: map[uint32]uint64{0: 43, 1: 18}},
	} {
		got, err := parsePositions(text)
		if err != nil || got.offset != want.offset || !maps.Equal(got.shards, want.shards) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "x", "1:", ":1", "1:2,", "1:2,3", "4294967296:0", "1:2,1:3", "1:18446744073709551616", "1:2:3"} {
		if got, err := parsePositions(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestPositionsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.MapOfN(rapid.Uint32(), rapid.Uint64(), 1, 5).Draw(t, "at")
		got, err := parsePositions(formatPositions(at))
		if err != nil || !maps.Equal(got.shards, at) {
			t.Errorf("%v came back as %v, %v", at, got.shards, err)
		}
	})
}

func TestNegativeDelta(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{[]string{"counter", "add", "c", "k", "-3"}, []string{"counter", "add", "c", "k", "--", "-3"}},
		{[]string{"--json", "counter", "add", "c", "k", "-3", "--tenant", "t"}, []string{"--json", "counter", "add", "c", "k", "--tenant", "t", "--", "-3"}},
		{[]string{"counter", "add", "c", "k", "--", "-3"}, []string{"counter", "add", "c", "k", "--", "-3"}},
		{[]string{"counter", "add", "c", "k", "3"}, []string{"counter", "add", "c", "k", "3"}},
		{[]string{"counter", "add", "c", "k", "-3x"}, []string{"counter", "add", "c", "k", "-3x"}},
		{[]string{"counter", "add", "--tenant", "-3", "c"}, []string{"counter", "add", "--tenant", "-3", "c"}},
		{[]string{"pub", "s", "-3"}, []string{"pub", "s", "-3"}},
	} {
		if got := negativeDelta(tc.args); !slices.Equal(got, tc.want) {
			t.Errorf("%q becomes %q, want %q", tc.args, got, tc.want)
		}
	}
}
