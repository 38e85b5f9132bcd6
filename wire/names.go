package wire

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A NameError says why a name or key is refused.
type NameError struct {
	Kind    string // what was named: "tenant", "stream", "cache key", ...
	Name    string
	Problem string
}

// Error quotes the name with control characters escaped, and cuts a long one.
func (e *NameError) Error() string {
	if len(e.Name) > MaxName {
		return fmt.Sprintf("invalid %s %q...: %s", e.Kind, e.Name[:MaxName], e.Problem)
	}
	return fmt.Sprintf("invalid %s %q: %s", e.Kind, e.Name, e.Problem)
}

// ValidateName checks the name of a tenant, namespace, stream, cache, group or
// consumer: 1 to [MaxName] bytes of UTF-8 without '/', ':', '*', '#', control
// characters or white space, and not "." or "..". kind says which, for the
// error, a [*NameError]. Names are compared byte by byte: case and Unicode
// normal form make different names.
func ValidateName(kind, s string) error {
	if problem := nameProblem(s); problem != "" {
		return &NameError{Kind: kind, Name: strings.Clone(s), Problem: problem}
	}
	return nil
}

func nameProblem(s string) string {
	switch {
	case s == "":
		return "empty"
	case len(s) > MaxName:
		return fmt.Sprintf("longer than %d bytes", MaxName)
	case s == "." || s == "..":
		return "reserved"
	}
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !utf8.FullRuneInString(s[i:]), r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			return "not valid UTF-8"
		case r == '/' || r == ':' || r == '*' || r == '#':
			return fmt.Sprintf("contains %q", r)
		case unicode.IsControl(r):
			return "contains a control character"
		case unicode.IsSpace(r):
			return "contains white space"
		}
	}
	return ""
}

// ValidateKey checks the key of a cache entry or counter: UTF-8, 1 to
// [MaxCacheKey] bytes. The error is a [*NameError].
func ValidateKey(key []byte) error {
	problem := ""
	switch {
	case len(key) == 0:
		problem = "empty"
	case len(key) > MaxCacheKey:
		problem = fmt.Sprintf("longer than %d bytes", MaxCacheKey)
	case !utf8.Valid(key):
		problem = "not valid UTF-8"
	default:
		return nil
	}
	return &NameError{Kind: "cache key", Name: string(key), Problem: problem}
}

// ValidateRoutingKey checks the routing key of a publish: any bytes, at most
// [MaxShortBytes]; an empty key is a key. The error is a [*NameError].
func ValidateRoutingKey(key []byte) error {
	if len(key) <= MaxShortBytes {
		return nil
	}
	return &NameError{Kind: "routing key", Name: string(key), Problem: fmt.Sprintf("longer than %d bytes", MaxShortBytes)}
}
