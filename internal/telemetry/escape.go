package telemetry

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// An escaper writes log lines with everything unprintable escaped. JSON
// demands that only of the controls below a space, and slog's text quotes all
// but DEL; a terminal obeys more. In a JSON line such a rune stands in a
// string, where the escape means the same.
type escaper struct{ w io.Writer }

func (e *escaper) Write(line []byte) (int, error) {
	if clean(line) {
		return e.w.Write(line)
	}
	out := make([]byte, 0, len(line)+16)
	for rest := line; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if plain(r) {
			out = append(out, rest[:size]...)
		} else {
			out = appendEscape(out, r)
		}
		rest = rest[size:]
	}
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}

// clean says whether a line can be written as it is.
func clean(line []byte) bool {
	for _, c := range line {
		if c >= utf8.RuneSelf || c == 0x7f {
			return false
		}
	}
	return true
}

// plain says whether a rune of a line needs no escape. The only line
// break in the line ends it.
func plain(r rune) bool { return r == '\n' || unicode.IsPrint(r) }

func appendEscape(dst []byte, r rune) []byte {
	if r > 0xFFFF {
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}
