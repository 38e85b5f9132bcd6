package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestValidateName(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	table := []struct {
		name string
		ok   bool
	}{
		{"", false}, {".", false}, {"..", false}, {"...", true}, {".a", true}, {"a.", true},
		{"a/b", false}, {"a\\b", true}, {"a:b", false}, {"*", false}, {"#", false}, {"a#1", false},
		{"a\x00b", false}, {"\x1f", false}, {"\x7f", false}, {"\u0085", false}, {"\u009f", false},
		{"a b", false}, {" a", false}, {"a ", false}, {"a\n", false}, {"a\tb", false},
		{"\u00a0", false}, {"\u2003", false}, {"\u2028", false}, {"\u3000", false},
		{long(253), true}, {long(254), false}, {long(255), false}, {long(256), false},
		{long(65535), false}, {long(65536), false},
		{strings.Repeat("é", 126), true}, {strings.Repeat("é", 127), false},
		{"\u00e9", true}, {"e\u0301", true}, {"CON", true}, {"a", true}, {"A", true},
		{"\U0001F600", true}, {"\u200f", true}, {"\ufffd", true},
		{"\xff", false}, {"a\xc3", false}, {"\xed\xa0\x80", false}, {"\xc0\xaf", false},
		{"t1", true}, {"orders-eu_1.v2", true}, {"a%2Fb", true},
	}
	for _, row := range table {
		err := ValidateName("stream", row.name)
		if (err == nil) != row.ok {
			t.Errorf("%.40q: %v", row.name, err)
		}
		var nameErr *NameError
		if err != nil {
			if !errors.As(err, &nameErr) || nameErr.Kind != "stream" || nameErr.Name != row.name {
				t.Errorf("%.40q: error %#v", row.name, err)
			}
			if text := err.Error(); strings.ContainsAny(text, "\x00\x1f\n\t\x7f") || len(text) > 2000 {
				t.Errorf("%.40q: error text %q", row.name, text)
			}
		}
	}
}

func TestValidateKey(t *testing.T) {
	table := []struct {
		key string
		ok  bool
	}{
		{"", false}, {"k", true}, {".", true}, {"a/b:c *#\n", true}, {"\x00", true},
		{strings.Repeat("k", 65535), true}, {strings.Repeat("k", 65536), false},
		{"cl\u00e9", true}, {"\xff", false},
	}
	for _, row := range table {
		err := ValidateKey([]byte(row.key))
		if (err == nil) != row.ok {
			t.Errorf("%.40q: %v", row.key, err)
		}
		var nameErr *NameError
		if err != nil && !errors.As(err, &nameErr) {
			t.Errorf("%.40q: error %#v", row.key, err)
		}
	}
	if ValidateRoutingKey(nil) != nil || ValidateRoutingKey(make([]byte, 65535)) != nil {
		t.Error("a routing key was refused")
	}
	if ValidateRoutingKey(make([]byte, 65536)) == nil {
		t.Error("a routing key of 65,536 bytes was accepted")
	}
}
