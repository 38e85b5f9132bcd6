package auth

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fits is the definition of a match, one byte at a time: reached[i] says
// whether the pattern's first i bytes can have consumed the text so far.
func fits(pattern, text string) bool {
	reached := make([]bool, len(pattern)+1)
	reached[0] = true
	skipStars := func() {
		for i := range len(pattern) {
			if reached[i] && pattern[i] == '*' {
				reached[i+1] = true
			}
		}
	}
	skipStars()
	for _, c := range []byte(text) {
		next := make([]bool, len(pattern)+1)
		for i := range len(pattern) {
			switch {
			case reached[i] && pattern[i] == '*':
				next[i] = true
			case reached[i] && pattern[i] == c:
				next[i+1] = true
			}
		}
		reached = next
		skipStars()
	}
	return reached[len(pattern)]
}

func TestPatternTable(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"stream:t/n/s", "stream:t/n/s", true},
		{"stream:t/n/s", "stream:t/n/S", false},
		{"stream:t/n/s", "stream:t/n/s2", false},
		{"stream:t/n/*", "stream:t/n/", true},
		{"stream:t/n/*", "stream:t/n", false},
		{"stream:t/*", "stream:t/n/s", true},
		{"stream:t/*/*", "stream:t/n/s", true},
		{"stream:t/*/s", "stream:t/n/other/s", true},
		{"*", "", true},
		{"**", "anything", true},
		{"", "", true},
		{"", "x", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"*ab*ab", "abab", true},
		{"*ab*ab", "ab", false},
		{"*aab", "aaab", true},
		{"a*b*c", "abbbc", true},
		{"a*b*c", "acb", false},
		{"\x00*\xff", "\x00\xff", true},
	} {
		p := compilePattern(tt.pattern)
		if got := p.match([]byte(tt.text)); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
		if ref := fits(tt.pattern, tt.text); ref != tt.want {
			t.Errorf("reference: %q matches %q: %v, want %v", tt.pattern, tt.text, ref, tt.want)
		}
	}
}

var (
	patternGen = rapid.StringMatching(`[ab/*]{0,8}`)
	textGen    = rapid.StringMatching(`[ab/]{0,10}`)
)

func TestPatternAgreesWithDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern, text := patternGen.Draw(t, "pattern"), textGen.Draw(t, "text")
		p := compilePattern(pattern)
		if got, want := p.match([]byte(text)), fits(pattern, text); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
	})
}

// everyText calls f with all texts of up to n letters of the alphabet.
func everyText(alphabet string, n int, f func(string)) {
	level := []string{""}
	for length := 0; ; length++ {
		var longer []string
		for _, text := range level {
			f(text)
			for _, c := range alphabet {
				longer = append(longer, text+string(c))
			}
		}
		if length == n {
			return
		}
		level = longer
	}
}

func TestPatternCoversAndReachesAgreeWithDefinition(t *testing.T) {
	pattern := rapid.StringMatching(`[ab*]{0,5}`)
	prefix := rapid.StringMatching(`[ab]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		text, start := pattern.Draw(t, "pattern"), prefix.Draw(t, "prefix")
		all, some := true, false
		// The letter c is in no pattern, so a run of them stands for every
		// continuation that no literal foresees.
		everyText("abc", 6, func(rest string) {
			fit := fits(text, start+rest)
			all = all && fit
			some = some || fit && rest != ""
		})
		p := compilePattern(text)
		if got := p.covers([]byte(start)); got != all {
			t.Fatalf("%q covers %q: %v, want %v", text, start, got, all)
		}
		if got := p.reaches([]byte(start)); got != some {
			t.Fatalf("%q reaches beyond %q: %v, want %v", text, start, got, some)
		}
	})
}

// TestPatternCostIsBounded feeds the patterns on which a matcher that tries
// every split would not return in the lifetime of the test.
func TestPatternCostIsBounded(t *testing.T) {
	text := []byte(strings.Repeat("a", 60_000))
	for _, pattern := range []string{
		strings.Repeat("a*", 10_000) + "b",
		strings.Repeat("*a", 10_000) + "*b*",
		"*" + strings.Repeat("a", 30_000) + "b*",
		strings.Repeat("*", 60_000) + "b",
	} {
		p := compilePattern(pattern)
		if p.match(text) {
			t.Errorf("%.20s... matches a text without b", pattern)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("stream:t/*/s*", "stream:t/n/s1")
	f.Add("*ab*ab", "ababab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.Contains(text, "*") || len(pattern)*len(text) > 1<<20 {
			return
		}
		p := compilePattern(pattern)
		if got, want := p.match([]byte(text)), fits(pattern, text); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
	})
}
