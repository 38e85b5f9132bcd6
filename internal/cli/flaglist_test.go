package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"
)

func TestFlagListStandsBesideOrBelow(t *testing.T) {
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringP("file", "f", "", "read `FILE` and a good many other things that need a second line")
	flags.Int("count", 3, "`N` times")
	flags.Bool("whole", false, "all of it")
	flags.String("hidden", "", "not for everybody")
	if err := flags.MarkHidden("hidden"); err != nil {
		t.Fatal(err)
	}
	const beside = `  -f, --file FILE   read FILE and a good many other things that need
                    a second line
      --count N     N times (default 3)
      --whole       all of it
`
	if got := flagList(flags, 68); got != beside {
		t.Errorf("got\n%s\nwant\n%s", got, beside)
	}
	flags.Bool("a-flag-whose-name-is-longer-than-most", false, "x")
	const below = `  -f, --file FILE
          read FILE and a good many other things that need a second
          line
      --count N
          N times (default 3)
`
	if got := flagList(flags, 68); !strings.HasPrefix(got, below) {
		t.Errorf("got\n%s\nwant it to begin with\n%s", got, below)
	}
}

// Wrapping keeps every word, in order, and the width where words allow it.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z ]{0,200}`).Draw(t, "text")
		width := rapid.IntRange(1, 60).Draw(t, "width")
		lines := wrap(text, width)
		if got, want := strings.Join(strings.Fields(strings.Join(lines, " ")), " "), strings.Join(strings.Fields(text), " "); got != want {
			t.Fatalf("words %q, want %q", got, want)
		}
		for _, line := range lines {
			if len(line) > width && strings.Contains(line, " ") {
				t.Fatalf("a line of %d characters: %q", len(line), line)
			}
		}
	})
}

func TestWithVariable(t *testing.T) {
	for _, tc := range []struct{ usage, variable, want string }{
		{"a", "", "a"},
		{"a", "V", "a (env V)"},
		{"a (default b)", "V", "a (default b; env V)"},
		{"a (see b)", "V", "a (see b) (env V)"},
	} {
		if got := withVariable(tc.usage, tc.variable); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
