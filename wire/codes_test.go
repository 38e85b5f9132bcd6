package wire

import "testing"

func TestCodes(t *testing.T) {
	// The table of wire 16.2.
	table := []struct {
		name  string
		class RetryClass
	}{
		{"unauthenticated", Fatal}, {"forbidden", Fatal}, {"not_found", RetryAfter},
		{"invalid_request", Fatal}, {"shard_unavailable", Retry}, {"not_leader", Redirect},
		{"quorum_timeout", OutcomeUnknown}, {"leadership_lost", OutcomeUnknown},
		{"unacknowledged", OutcomeUnknown}, {"overloaded", RetryAfter}, {"limit_exceeded", Fatal},
		{"draining", Retry}, {"internal", OutcomeUnknown}, {"storage", OutcomeUnknown},
		{"stale_claim", Retry},
	}
	for i, row := range table {
		c := Code(i + 1)
		if c.String() != row.name {
			t.Errorf("code %d is %s, want %s", c, c, row.name)
		}
		if got, ok := CodeByName(row.name); !ok || got != c {
			t.Errorf("%s is code %d, %v", row.name, got, ok)
		}
		if DefaultClass(c) != row.class {
			t.Errorf("%s: class %s, want %s", c, DefaultClass(c), row.class)
		}
	}
	for _, c := range []Code{0, Code(len(table) + 1), 999} {
		if DefaultClass(c) != Fatal {
			t.Errorf("unknown code %d has class %s", c, DefaultClass(c))
		}
		if _, ok := CodeByName(c.String()); ok {
			t.Errorf("%s is known", c)
		}
	}
	if Code(999).String() != "code_999" {
		t.Errorf("code 999 is called %s", Code(999))
	}
}

func TestRetryClasses(t *testing.T) {
	for i, name := range []string{"retry", "retry_after", "redirect", "outcome_unknown", "fatal"} {
		c := RetryClass(i + 1)
		if c.String() != name || RetryClassByName(name) != c || !c.Known() || c.Effective() != c {
			t.Errorf("class %d: %s, by name %d", c, c, RetryClassByName(name))
		}
	}
	for _, c := range []RetryClass{0, 6, 99, 255} {
		if c.Known() || c.Effective() != Fatal || c.String() != "fatal" {
			t.Errorf("unknown class %d acts as %s", c, c.Effective())
		}
	}
	if RetryClassByName("later") != Fatal || RetryClassByName("") != Fatal {
		t.Error("an unknown class name is not fatal")
	}
}
