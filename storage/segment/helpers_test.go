package segment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golden reads a vector: hex, with comments from # to the end of a line.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

func wantBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %x\nwant %x", what, got, want)
	}
}

// failer is a test, of testing or of rapid.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// wantKind checks that err is a corruption of that kind.
func wantKind(t *testing.T, err error, kind CorruptionKind) *CorruptionError {
	t.Helper()
	var c *CorruptionError
	if !errors.As(err, &c) {
		t.Fatalf("got %v, want a corruption: %v", err, kind)
	}
	if c.Kind != kind {
		t.Fatalf("got %v, want kind %v", err, kind)
	}
	return c
}

// block makes a record block.
func block(records ...string) []byte {
	b := appendU32(nil, uint32(len(records)))
	for _, r := range records {
		b = appendU32(b, uint32(len(r)))
		b = append(b, r...)
	}
	return b
}

// eachBit calls try with every single bit of b inverted in turn.
func eachBit(b []byte, try func(bit int, damaged []byte)) {
	damaged := bytes.Clone(b)
	for bit := range len(b) * 8 {
		damaged[bit/8] ^= 1 << (bit % 8)
		try(bit, damaged)
		damaged[bit/8] ^= 1 << (bit % 8)
	}
}
