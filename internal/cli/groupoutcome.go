package cli

import (
	"fmt"

	"github.com/felixlog/felix/client"
)

// A claimError is what went wrong with one claim of a command line.
type claimError struct {
	claim client.Claim
	err   error
}

func (e *claimError) Error() string { return fmt.Sprintf("claim %s: %v", formatClaim(e.claim), e.err) }
func (e *claimError) Unwrap() error { return e.err }

// claimOutcome is what became of a claim, as --json prints it.
type claimOutcome struct {
	Claim string `json:"claim"`
	// Done is what was done, such as "acked"; empty where Error says why not.
	Done  string `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
	Code  string `json:"code,omitempty"`
}

// tellOutcomes prints a line for each claim, whose outcomes stand beside them;
// those without one were not tried any more. Of the claims that failed the
// first is returned as the error of the command.
func (a *App) tellOutcomes(claims []client.Claim, outcomes []error, done string) error {
	var first error
	failed := len(claims) - len(outcomes)
	for i, err := range outcomes {
		if err != nil {
			if failed++; first == nil {
				first = &claimError{claims[i], err}
			}
		}
		if len(claims) == 1 && err != nil {
			return first // the error says it all
		}
		if err := a.tellOutcome(claims[i], done, err); err != nil {
			return err
		}
	}
	if first == nil || failed == 1 {
		return first
	}
	return &Error{Err: fmt.Errorf("%d of %d claims failed, the first: %w", failed, len(claims), first)}
}

func (a *App) tellOutcome(claim client.Claim, done string, failure error) error {
	switch {
	case a.flags.json && failure != nil:
		told := explain(failure)
		return printJSON(a.Stdout, claimOutcome{Claim: formatClaim(claim), Error: told.Error, Code: told.Code})
	case a.flags.json:
		return printJSON(a.Stdout, claimOutcome{Claim: formatClaim(claim), Done: done})
	case a.flags.quiet:
		return nil
	case failure != nil:
		_, err := fmt.Fprintf(a.Stdout, "%s not %s: %s\n", formatClaim(claim), done, appendRaw(nil, []byte(failure.Error()), a.StdoutTTY))
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "%s %s\n", formatClaim(claim), done)
	return err
}
