package auth

import (
	"bytes"
	"strings"
)

// A pattern is an object in which '*' matches any run of bytes, the empty run
// and separators included (wire 17.2). It is cut at its stars once, so that a
// match is one forward pass: each literal is taken where it first fits, which
// decides as well as every other place would, and nothing is tried twice.
type pattern struct {
	head  []byte   // literal before the first star; the whole text without one
	mid   [][]byte // literals between two stars, in order
	tail  []byte   // literal after the last star
	exact bool     // no star
}

func compilePattern(text string) pattern {
	head, rest, wild := strings.Cut(text, "*")
	p := pattern{head: []byte(head), exact: !wild}
	for wild {
		var literal string
		literal, rest, wild = strings.Cut(rest, "*")
		switch {
		case !wild:
			p.tail = []byte(literal)
		case literal != "":
			p.mid = append(p.mid, []byte(literal))
		}
	}
	return p
}

// match says whether the whole of s fits the pattern.
func (p *pattern) match(s []byte) bool {
	if p.exact {
		return bytes.Equal(p.head, s)
	}
	if len(s) < len(p.head)+len(p.tail) || !bytes.HasPrefix(s, p.head) || !bytes.HasSuffix(s, p.tail) {
		return false
	}
	s = s[len(p.head) : len(s)-len(p.tail)]
	for _, literal := range p.mid {
		at := bytes.Index(s, literal)
		if at < 0 {
			return false
		}
		s = s[at+len(literal):]
	}
	return true
}

// covers says whether every string that begins with prefix fits.
//
// That is so exactly when the pattern ends in a star and fits prefix itself:
// the star takes whatever follows. With a literal at the end some
// continuation never fits.
func (p *pattern) covers(prefix []byte) bool {
	return !p.exact && len(p.tail) == 0 && p.match(prefix)
}

// reaches says whether some longer string that begins with prefix fits.
func (p *pattern) reaches(prefix []byte) bool {
	if len(p.head) > len(prefix) {
		return bytes.HasPrefix(p.head, prefix)
	}
	return !p.exact && bytes.HasPrefix(prefix, p.head)
}

// A patternSet is any number of patterns, of which one must fit. Exact
// objects are looked up; patterns with stars are tried in turn.
type patternSet struct {
	exact map[string]struct{}
	wild  []pattern
}

func (s *patternSet) add(text string) {
	if strings.Contains(text, "*") {
		s.wild = append(s.wild, compilePattern(text))
		return
	}
	if s.exact == nil {
		s.exact = make(map[string]struct{})
	}
	s.exact[text] = struct{}{}
}

func (s *patternSet) match(object []byte) bool {
	if len(s.exact) > 0 {
		if _, found := s.exact[string(object)]; found {
			return true
		}
	}
	for i := range s.wild {
		if s.wild[i].match(object) {
			return true
		}
	}
	return false
}

func (s *patternSet) covers(prefix []byte) bool {
	for i := range s.wild {
		if s.wild[i].covers(prefix) {
			return true
		}
	}
	return false
}

func (s *patternSet) wildReaches(prefix []byte) bool {
	for i := range s.wild {
		if s.wild[i].reaches(prefix) {
			return true
		}
	}
	return false
}
