package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// readLines reads all lines of in.
func readLines(t interface{ Fatal(...any) }, in io.Reader, maxLine int) [][]byte {
	lines := newLineReader(in, maxLine)
	var all [][]byte
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
}

func TestLines(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"\n", []string{""}},
		{"a", []string{"a"}},
		{"a\n", []string{"a"}},
		{"a\nb", []string{"a", "b"}},
		{"a\n\nb\n", []string{"a", "", "b"}},
		{"\n\n", []string{"", ""}},
		{"a\r\nb\r\n", []string{"a\r", "b\r"}},
		{"  a  \n\tb\n", []string{"  a  ", "\tb"}},
		{"\x00\xff\n", []string{"\x00\xff"}},
	} {
		var got []string
		for _, line := range readLines(t, strings.NewReader(tc.in), 100) {
			got = append(got, string(line))
		}
		if len(got) != len(tc.want) {
			t.Errorf("%q: lines %q, want %q", tc.in, got, tc.want)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%q: lines %q, want %q", tc.in, got, tc.want)
			}
		}
	}
}

// What "felix pub" cuts and "felix sub" prints is the input again, if it ends
// with a newline, however the input arrives in pieces.
func TestLinesAreTheInputAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few distinct bytes, so that newlines are frequent; some long runs,
		// so that lines outgrow the buffer.
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`[a\n\r\x00\xff]{0,20}`),
			rapid.Map(rapid.IntRange(0, 3*lineBuffer), func(n int) string { return strings.Repeat("x", n) }),
		)).Draw(t, "parts")
		input := strings.Join(parts, "")
		var in io.Reader = strings.NewReader(input)
		if rapid.Bool().Draw(t, "piecemeal") {
			in = iotest.HalfReader(in)
		}
		var printed bytes.Buffer
		for _, line := range readLines(t, in, len(input)+1) {
			if bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("a line holds a newline: %q", line)
			}
			printed.Write(line)
			printed.WriteByte('\n')
		}
		want := input
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if printed.String() != want {
			t.Fatalf("%d bytes in, %d bytes out", len(input), printed.Len())
		}
	})
}

// Earlier lines stay as they were while later ones are read.
func TestLinesAreNotOverwritten(t *testing.T) {
	first := strings.Repeat("a", lineBuffer/2)
	lines := newLineReader(strings.NewReader(first+"\n"+strings.Repeat("b", 2*lineBuffer)+"\n"), 4*lineBuffer)
	one, err := lines.next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lines.next(); err != nil {
		t.Fatal(err)
	}
	if string(one) != first {
		t.Error("the first line changed while the second was read")
	}
}

func TestLineTooLong(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		line     uint64
	}{
		{"ended", "ok\n" + strings.Repeat("x", 11) + "\nok\n", 2},
		{"unended", strings.Repeat("x", 11), 1},
		{"far longer than the buffer", strings.Repeat("x", 3*lineBuffer), 1},
	} {
		lines := newLineReader(strings.NewReader(tc.in), 10)
		var err error
		for err == nil {
			_, err = lines.next()
		}
		tooLong, ok := errors.AsType[*lineTooLongError](err)
		if !ok || tooLong.Line != tc.line {
			t.Errorf("%s: error %v, want line %d to be too long", tc.name, err, tc.line)
		}
	}
	if got := readLines(t, strings.NewReader(strings.Repeat("x", 10)+"\n"), 10); len(got) != 1 {
		t.Errorf("a line of exactly the most: %d lines", len(got))
	}
}

func TestReadErrorIsPassedOn(t *testing.T) {
	broken := errors.New("broken pipe")
	lines := newLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 10)
	if line, err := lines.next(); err != nil || string(line) != "a" {
		t.Fatalf("line %q, error %v", line, err)
	}
	if line, err := lines.next(); !errors.Is(err, broken) {
		t.Errorf("line %q, error %v: want the reader's", line, err)
	}
}

// ready is true exactly when a whole line was read already.
func TestReadyDoesNotWait(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	lines := newLineReader(in, 100)
	if lines.ready() {
		t.Error("ready before anything was read")
	}
	go out.Write([]byte("a\nb\nc"))
	for _, want := range []struct {
		line  string
		ready bool
	}{{"a", true}, {"b", false}} {
		line, err := lines.next()
		if err != nil || string(line) != want.line {
			t.Fatalf("line %q, error %v; want %q", line, err, want.line)
		}
		if lines.ready() != want.ready {
			t.Errorf("after %q: ready is %v", want.line, !want.ready)
		}
	}
}
