package cli

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md")

func testRoot(t *testing.T) *cobra.Command {
	t.Helper()
	return newTestApp(t, nil).Root()
}

// Every command says what it is, at length and in short, with examples.
func TestEveryCommandIsDocumented(t *testing.T) {
	walk(testRoot(t), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		switch {
		case cmd.Short == "":
			t.Errorf("%s has no short help", path)
		case strings.HasSuffix(cmd.Short, "."), len(cmd.Short) > 80, strings.Contains(cmd.Short, "\n"):
			t.Errorf("%s: the short help is no phrase of one line: %q", path, cmd.Short)
		}
		if len(cmd.Long) <= len(cmd.Short) && len(cmd.Long) < 40 {
			t.Errorf("%s has no long help", path)
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", path)
		}
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			if len(line) > 80 && !strings.HasPrefix(line, "  ") && strings.Contains(cmd.Long, "\n") {
				t.Errorf("%s: a line of the long help is longer than 80: %q", path, line)
			}
		}
		ownFlags(cmd).VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", path, f.Name)
			}
		})
		if cmd.HasParent() && !cmd.Parent().HasParent() && !cmd.Hidden && cmd.Runnable() && cmd.GroupID == "" {
			t.Errorf("%s is in no group of the overview", path)
		}
	})
}

// A flag of a command does not stand for something else than the global flag
// of its name.
func TestNoFlagHidesAnother(t *testing.T) {
	allowed := map[string]bool{ // a server reads no contexts: its settings
		"felix broker --config":                      true,
		"felix broker --controlplane-url":            true,
		"felix controlplane --config":                true,
		"felix controlplane migrate export --config": true,
		"felix controlplane migrate import --config": true,
		"felix controlplane migrate schema --config": true,
	}
	root := testRoot(t)
	shorthands := make(map[string]string)
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { shorthands[f.Shorthand] = f.Name })
	walk(root, func(cmd *cobra.Command) {
		if !cmd.HasParent() {
			return
		}
		names := make(map[string]bool)
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if names[f.Name] {
				t.Errorf("%s has --%s twice", cmd.CommandPath(), f.Name)
			}
			names[f.Name] = true
			if root.PersistentFlags().Lookup(f.Name) != nil && !allowed[cmd.CommandPath()+" --"+f.Name] {
				t.Errorf("%s --%s hides the global flag", cmd.CommandPath(), f.Name)
			}
			if f.Shorthand != "" && shorthands[f.Shorthand] != "" {
				t.Errorf("%s -%s hides the global flag --%s", cmd.CommandPath(), f.Shorthand, shorthands[f.Shorthand])
			}
		})
	})
}

// The examples name commands and flags that exist, with arguments that fit.
func TestExamplesParse(t *testing.T) {
	walk(testRoot(t), func(documented *cobra.Command) {
		for line := range strings.SplitSeq(strings.ReplaceAll(documented.Example, "\\\n", " "), "\n") {
			for _, words := range felixCommands(line) {
				cmd, rest, err := testRoot(t).Find(negativeDelta(words))
				if err != nil {
					t.Errorf("%s: example %q: %v", documented.CommandPath(), line, err)
					continue
				}
				if err := cmd.ParseFlags(rest); err != nil {
					t.Errorf("%s: example %q: %v", documented.CommandPath(), line, err)
					continue
				}
				if cmd.Args != nil {
					if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
						t.Errorf("%s: example %q: %v", documented.CommandPath(), line, err)
					}
				}
				if cmd.HasSubCommands() && !strings.Contains(cmd.Use, " ") && len(cmd.Flags().Args()) > 0 {
					t.Errorf("%s: example %q: %q has no command %q", documented.CommandPath(), line, cmd.CommandPath(), cmd.Flags().Arg(0))
				}
			}
		}
	})
}

// felixCommands cuts the calls of felix out of a line of shell, in words,
// without the name felix.
func felixCommands(line string) [][]string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return nil
	}
	var commands [][]string
	words := shellWords(line)
	for i, word := range words {
		if inner, nested := strings.CutPrefix(word, "$("); nested {
			commands = append(commands, felixCommands(strings.TrimSuffix(inner, ")"))...)
		}
		if word != "felix" || i > 0 && !slices.Contains([]string{"|", "<(", "&&", "||"}, words[i-1]) {
			continue
		}
		end := i + 1
		for end < len(words) && !slices.Contains([]string{"|", ">", ">>", "2>&1", ")", "&&", "||"}, words[end]) {
			end++
		}
		commands = append(commands, words[i+1:end])
	}
	return commands
}

// shellWords cuts a line at its blanks, but for those in quotes.
func shellWords(line string) []string {
	var words []string
	for line != "" {
		at := strings.IndexAny(line, `'"`)
		if at < 0 {
			at = len(line)
		}
		plain := strings.ReplaceAll(strings.ReplaceAll(line[:at], "<(", " <( "), ")", " ) ")
		words = append(words, strings.Fields(plain)...)
		if at == len(line) {
			break
		}
		quoted, rest, _ := strings.Cut(line[at+1:], line[at:at+1])
		words, line = append(words, quoted), rest
	}
	return words
}

// docs/cli.md is what the tree says.
func TestReference(t *testing.T) {
	const path = "../../docs/cli.md"
	want := reference(testRoot(t))
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the command tree says; rewrite it with: go test ./internal/cli -run TestReference -update", path)
	}
}

// A tree is made anew for each command line, so one leaves nothing behind for
// the next.
func TestCommandLinesDoNotShareState(t *testing.T) {
	ta := newTestApp(t, nil)
	if code := ta.Run(t.Context(), []string{"version", "--json"}); code != ExitOK {
		t.Fatalf("exit %d: %s", code, &ta.errs)
	}
	ta.out.Reset()
	if code := ta.Run(t.Context(), []string{"version"}); code != ExitOK {
		t.Fatalf("exit %d: %s", code, &ta.errs)
	}
	if strings.HasPrefix(ta.out.String(), "{") {
		t.Errorf("--json of the command line before counts: %s", &ta.out)
	}
}
