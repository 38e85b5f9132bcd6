// Command compare measures Felix beside what it is measured against, in one
// run: the same work, in turns, each server and client in a process of its
// own, and prints the ratios. docs/benchmarks.md says how to run and read it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // could not measure
	exitUsage   = 2
	exitBelow   = 3 // with -check: a row is below its floor or invalid
	childMarker = "child"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == childMarker {
		os.Exit(childMain(ctx, os.Args[2:], os.Stderr))
	}
	os.Exit(parentMain(ctx, os.Args[1:]))
}

func parentMain(ctx context.Context, args []string) int {
	s, err := parseSettings(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		return exitUsage
	case s.list:
		if err := listRows(os.Stdout, catalogue()); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			return exitFailed
		}
		return exitOK
	}
	doc, err := compare(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		return exitFailed
	}
	if err := show(os.Stdout, doc, s.json); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		return exitFailed
	}
	if failing := doc.Failing(); s.check && len(failing) > 0 {
		fmt.Fprintf(os.Stderr, "compare: %d of %d lines do not hold\n", len(failing), len(doc.Lines))
		return exitBelow
	}
	return exitOK
}
