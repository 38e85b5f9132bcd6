// Package suggest finds the name a person probably meant.
package suggest

import "strings"

// maxLength is the longest name worth comparing; nobody mistypes a longer one.
const maxLength = 128

// Closest returns the known name nearest to a misspelt one, or "" when none is
// near enough. Case does not count.
//
// Near is either a few edits (a third of the letters, and one at least; a swap
// of neighbours is one edit) or the same words with others between them:
// publish_window for broker_publish_window.
func Closest(name string, known []string) string {
	if len(name) > maxLength {
		return ""
	}
	wanted := strings.ToLower(name)
	best, bestDistance := "", max(1, len(wanted)/3)+1
	for _, candidate := range known {
		lower := strings.ToLower(candidate)
		distance := edits(wanted, lower)
		if extra := extraWords(wanted, lower); extra >= 0 {
			distance = min(distance, extra)
		}
		if distance < bestDistance && distance < len(lower) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// Sentence is " (did you mean x?)" for the closest known name, or "".
func Sentence(name string, known []string) string {
	if closest := Closest(name, known); closest != "" {
		return " (did you mean " + closest + "?)"
	}
	return ""
}

// extraWords is how many words the longer of two names has beside those of
// the shorter, which it holds in order; -1 when it does not, or when the
// shorter is a single word.
func extraWords(a, b string) int {
	short, long := words(a), words(b)
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) < 2 {
		return -1
	}
	extra := len(long) - len(short)
	for _, word := range long {
		if len(short) > 0 && short[0] == word {
			short = short[1:]
		}
	}
	if len(short) > 0 {
		return -1
	}
	return extra
}

func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}

// edits is the Levenshtein distance in bytes with swaps of neighbours.
func edits(a, b string) int {
	older := make([]int, len(b)+1)
	old := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(old[j+1]+1, row[j]+1, old[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
