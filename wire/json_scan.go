package wire

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// A problem says why a value could not be read; empty when it could.
type problem string

const (
	badEnd       problem = "ends too early"
	badSyntax    problem = "not valid JSON"
	badString    problem = "not a string"
	badControl   problem = "control character in a string"
	badEscape    problem = "bad escape in a string"
	badSurrogate problem = "lone surrogate in a string"
	badUTF8      problem = "not valid UTF-8"
	badUint      problem = "not an unsigned integer"
	badInt       problem = "not an integer"
	badRange     problem = "out of range"
	badBool      problem = "not a boolean"
	badObject    problem = "not an object"
	badArray     problem = "not an array"
	badNesting   problem = "nested too deep"
	badBase64    problem = "not canonical base64"
	badWord      problem = "unknown word"
	badChoice    problem = "more than one choice"
	badMissing   problem = "missing"
	badTwice     problem = "given twice"
)

// A scanner reads JSON values (RFC 8259) from a payload, strictly.
type scanner struct {
	data    []byte
	pos     int
	scratch []byte // holds the last string that had escapes
}

// peek is the next byte that is no white space, or 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		s.pos++
	}
	return 0
}

// accept consumes c if it is the next byte that is no white space.
func (s *scanner) accept(c byte) bool {
	if s.peek() != c || s.pos == len(s.data) {
		return false
	}
	s.pos++
	return true
}

// literal consumes the word if it comes next.
func (s *scanner) literal(word string) bool {
	s.peek()
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// null consumes a null if it comes next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal("null") }

// text reads a string. The result is a view of the payload, or of the scratch
// when the string has escapes, and then valid until the next text.
func (s *scanner) text() (b []byte, escaped bool, _ problem) {
	if !s.accept('"') {
		return nil, false, badString
	}
	start := s.pos
	run := start // where the part begins that is not in the scratch yet
	for at := start; ; {
		var c byte
		at, c = plain(s.data, at)
		switch {
		case at == len(s.data):
			return nil, false, badEnd
		case c == '"':
			s.pos = at + 1
			if !escaped {
				return s.data[start:at:at], false, ""
			}
			s.scratch = append(s.scratch, s.data[run:at]...)
			return s.scratch, true, ""
		case c == '\\':
			if !escaped {
				escaped = true
				s.scratch = s.scratch[:0]
			}
			s.scratch = append(s.scratch, s.data[run:at]...)
			s.pos = at + 1
			if p := s.escape(); p != "" {
				return nil, false, p
			}
			at, run = s.pos, s.pos
		case c < ' ':
			return nil, false, badControl
		default:
			r, n := utf8.DecodeRune(s.data[at:])
			if r == utf8.RuneError && n == 1 {
				return nil, false, badUTF8
			}
			at += n
		}
	}
}

// plain finds the first byte from at on that is not plain ASCII inside a
// string: a quote, backslash, control character or part of a longer character.
func plain(data []byte, at int) (int, byte) {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for at+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[at:])
		quote := w ^ '"'*ones
		slash := w ^ '\\'*ones
		if (w|(w-' '*ones)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
		at += 8
	}
	for ; at < len(data); at++ {
		if c := data[at]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return at, c
		}
	}
	return at, 0
}

// escape reads what follows a backslash and appends it to the scratch.
func (s *scanner) escape() problem {
	if s.pos == len(s.data) {
		return badEnd
	}
	c := s.data[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicodeEscape()
	default:
		return badEscape
	}
	s.scratch = append(s.scratch, c)
	return ""
}

func (s *scanner) unicodeEscape() problem {
	r, ok := s.hex4()
	if !ok {
		return badEscape
	}
	if utf16.IsSurrogate(r) {
		if len(s.data)-s.pos < 2 || s.data[s.pos] != '\\' || s.data[s.pos+1] != 'u' {
			return badSurrogate
		}
		s.pos += 2
		low, ok := s.hex4()
		if !ok {
			return badEscape
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return badSurrogate
		}
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return ""
}

func (s *scanner) hex4() (rune, bool) {
	if len(s.data)-s.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range s.data[s.pos : s.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.pos += 4
	return r, true
}

// unsigned reads an integer from 0 to limit.
func (s *scanner) unsigned(limit uint64) (uint64, problem) {
	s.peek()
	return s.digits(limit, badUint)
}

// signed reads a 64-bit signed integer.
func (s *scanner) signed() (int64, problem) {
	if !s.accept('-') {
		u, p := s.digits(math.MaxInt64, badInt)
		return int64(u), p
	}
	u, p := s.digits(1<<63, badInt)
	return -int64(u), p
}

// digits reads an integer without sign, fraction or exponent; bad is what
// anything else is.
func (s *scanner) digits(limit uint64, bad problem) (uint64, problem) {
	start := s.pos
	var v uint64
	overflow := false
	for ; s.pos < len(s.data); s.pos++ {
		d := uint64(s.data[s.pos] - '0')
		if d > 9 {
			break
		}
		if v > (math.MaxUint64-d)/10 {
			overflow = true
		}
		v = v*10 + d
	}
	n := s.pos - start
	switch {
	case n == 0, n > 1 && s.data[start] == '0':
		return 0, bad
	case s.pos < len(s.data) && (s.data[s.pos] == '.' || s.data[s.pos]|0x20 == 'e'):
		return 0, bad
	case overflow, v > limit:
		return 0, badRange
	}
	return v, ""
}

func (s *scanner) boolean() (bool, problem) {
	switch s.peek() {
	case 't':
		if s.literal("true") {
			return true, ""
		}
	case 'f':
		if s.literal("false") {
			return false, ""
		}
	}
	return false, badBool
}

// number validates and passes over any JSON number.
func (s *scanner) number() problem {
	at, d := s.pos, s.data
	run := func() bool {
		from := at
		for at < len(d) && '0' <= d[at] && d[at] <= '9' {
			at++
		}
		return at > from
	}
	if at < len(d) && d[at] == '-' {
		at++
	}
	first := at
	if !run() || d[first] == '0' && at > first+1 {
		return badSyntax
	}
	if at < len(d) && d[at] == '.' {
		if at++; !run() {
			return badSyntax
		}
	}
	if at < len(d) && d[at]|0x20 == 'e' {
		if at++; at < len(d) && (d[at] == '+' || d[at] == '-') {
			at++
		}
		if !run() {
			return badSyntax
		}
	}
	s.pos = at
	return ""
}

// skip validates and passes over one value. It keeps no stack but one bit a
// level, and gives up below MaxNesting levels (wire 4.6).
func (s *scanner) skip() problem {
	var objects uint64 // bit i: level i is an object
	depth := 0
	for {
		var p problem
		opened := false
		switch c := s.peek(); {
		case c == '{' || c == '[':
			if depth == MaxNesting {
				return badNesting
			}
			s.pos++
			objects = objects<<1 | uint64(c>>5&1)
			depth++
			opened = true
		case c == '"':
			_, _, p = s.text()
		case c == '-' || '0' <= c && c <= '9':
			p = s.number()
		case c == 't' || c == 'f':
			_, p = s.boolean()
		case c == 'n':
			if !s.literal("null") {
				p = badSyntax
			}
		case s.pos == len(s.data):
			p = badEnd
		default:
			p = badSyntax
		}
		if p != "" {
			return p
		}
		for {
			if depth == 0 {
				return ""
			}
			inObject := objects&1 != 0
			closing := byte(']')
			if inObject {
				closing = '}'
			}
			if s.accept(closing) {
				objects >>= 1
				depth--
				opened = false
				continue
			}
			if !opened && !s.accept(',') {
				return s.expected()
			}
			if inObject {
				if _, _, p := s.text(); p != "" {
					return p
				}
				if !s.accept(':') {
					return s.expected()
				}
			}
			break
		}
	}
}

// expected is the problem when another byte should have come.
func (s *scanner) expected() problem {
	if s.peek(); s.pos == len(s.data) {
		return badEnd
	}
	return badSyntax
}
