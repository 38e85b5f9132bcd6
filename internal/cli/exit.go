package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The exit codes of every command.
const (
	ExitOK          = 0 // done
	ExitOther       = 1 // something else went wrong
	ExitUsage       = 2 // wrong arguments or settings, or a confirmation is missing
	ExitUnreachable = 3 // nothing could be reached
	ExitRefused     = 4 // a broker or the control plane refused
	ExitNotFound    = 5 // what was asked for does not exist
	ExitWouldRepair = 6 // opening a log would repair it
	ExitWouldRefuse = 7 // a log is damaged, and would not be opened
)

// exitMeanings says each code in words, for the help and the reference.
func exitMeanings() []string {
	return []string{
		ExitOK:          "done",
		ExitOther:       "anything else went wrong",
		ExitUsage:       "wrong arguments or settings, or a confirmation is missing",
		ExitUnreachable: "nothing could be reached",
		ExitRefused:     "refused by a broker or the control plane",
		ExitNotFound:    "what was asked for does not exist",
		ExitWouldRepair: "opening a log would repair it",
		ExitWouldRefuse: "a log is damaged, and would not be opened",
	}
}

// An Error is a failure with its exit code and, where there is one, a line on
// what to do about it.
type Error struct {
	// Exit is the code; 0 leaves it to what Err is.
	Exit int
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// usageError is a mistake on the command line or in the settings.
func usageError(format string, args ...any) *Error {
	return &Error{Exit: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// hinting adds advice to an error.
func (e *Error) hinting(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// errorReport is how an error is told with --json.
type errorReport struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	// Code and Retry are those of a broker's refusal.
	Code  string `json:"code,omitempty"`
	Retry string `json:"retry,omitempty"`
	Exit  int    `json:"exit"`
}

// report tells err on Stderr and returns the exit code it stands for.
func (a *App) report(err error, asJSON bool) int {
	told := explain(err)
	if asJSON {
		line, marshalErr := json.Marshal(told)
		if marshalErr == nil {
			fmt.Fprintf(a.Stderr, "%s\n", line)
			return told.Exit
		}
	}
	fmt.Fprintf(a.Stderr, "felix: %s\n", indentAfterFirst(told.Error, "  "))
	if told.Hint != "" {
		fmt.Fprintf(a.Stderr, "  %s\n", indentAfterFirst(told.Hint, "  "))
	}
	return told.Exit
}

// indentAfterFirst sets the second and later lines of text in.
func indentAfterFirst(text, indent string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+indent)
}

// explain finds the exit code of an error and what can be said about it.
func explain(err error) errorReport {
	told := errorReport{Error: err.Error(), Exit: ExitOther}
	explainClient(err, &told)
	var ours *Error
	if errors.As(err, &ours) {
		if ours.Exit != 0 {
			told.Exit = ours.Exit
		}
		if ours.Hint != "" && told.Hint != "" {
			told.Hint = ours.Hint + "\n" + told.Hint
		} else if ours.Hint != "" {
			told.Hint = ours.Hint
		}
	}
	return told
}
