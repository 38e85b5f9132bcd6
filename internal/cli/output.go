package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// remark tells a person something beside the result, on Stderr. It is not
// told with --quiet or --json.
func (a *App) remark(format string, args ...any) {
	if a.flags.quiet || a.flags.json {
		return
	}
	fmt.Fprintf(a.Stderr, "felix: "+format+"\n", args...)
}

// printJSON writes one value as one line.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// appendJSON appends one value to dst, without a newline. The values are ours
// and hold nothing JSON cannot say.
func appendJSON(dst []byte, value any) []byte {
	var out bytes.Buffer
	if err := printJSON(&out, value); err != nil {
		panic("felix: " + err.Error())
	}
	return append(dst, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...)
}

// printTable writes rows under a heading, in columns.
func printTable(w io.Writer, heading []string, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(heading, "\t"))
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// payloadJSON is a payload as --json shows it: as text where it is UTF-8, in
// base64 where it is not. Exactly one of the two is set.
type payloadJSON struct {
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
}

func newPayloadJSON(payload []byte) payloadJSON {
	text, encoded := textOrBase64(payload)
	return payloadJSON{Payload: text, PayloadBase64: encoded}
}

// textOrBase64 returns payload as text where it is UTF-8, else in base64.
func textOrBase64(payload []byte) (text, encoded *string) {
	if utf8.Valid(payload) {
		return new(string(payload)), nil
	}
	return nil, new(base64.StdEncoding.EncodeToString(payload))
}

// appendRaw appends a payload for a person or a pipe: a pipe gets the bytes
// as they are, a terminal gets them with everything unprintable escaped, so
// that no payload can steer it.
func appendRaw(dst, payload []byte, tty bool) []byte {
	if !tty {
		return append(dst, payload...)
	}
	for len(payload) > 0 {
		r, size := utf8.DecodeRune(payload)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\x%02x`, payload[0])
		case r == '\t' || unicode.IsPrint(r):
			dst = append(dst, payload[:size]...)
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r < 0x80:
			dst = fmt.Appendf(dst, `\x%02x`, r)
		case r < 0x10000:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = fmt.Appendf(dst, `\U%08x`, r)
		}
		payload = payload[size:]
	}
	return dst
}

// count writes n with a comma between the thousands.
func count(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var out strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return out.String()
}

// plural is n with its noun, in the plural unless n is one.
func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// size writes a number of bytes in binary units.
func size(n uint64) string {
	const unit = 1024
	if n < unit {
		return plural(n, "byte")
	}
	value, suffix := float64(n), ""
	for _, suffix = range []string{"KiB", "MiB", "GiB", "TiB"} {
		value /= unit
		if value < unit {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", value, suffix)
}

// exactSize writes a number of bytes in the largest unit that does so without a
// fraction: what somebody set is shown as it is.
func exactSize(n uint64) string {
	for _, unit := range []struct {
		bytes uint64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n != 0 && n%unit.bytes == 0 {
			return count(n/unit.bytes) + " " + unit.name
		}
	}
	return plural(n, "byte")
}

// perSecond is the rate of n things in d, 0 when no time passed.
func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// rate writes how many nouns pass in a second: 1,234 messages/s.
func rate(perSecond float64, noun string) string {
	switch {
	case noun == "byte":
		return size(uint64(perSecond)) + "/s"
	case perSecond < 10:
		return fmt.Sprintf("%.1f %ss/s", perSecond, noun)
	}
	return count(uint64(perSecond+0.5)) + " " + noun + "s/s"
}

// elapsed writes a duration to about three digits.
func elapsed(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
