package proc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Say writes v to standard output as one line of JSON: the child's half of
// [Process.Document].
func Say(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	_, err = os.Stdout.Write(append(b, '\n'))
	return err
}

// UntilReleased ends the returned context when the parent closes this
// process's standard input, by Stop or by its own end.
func UntilReleased(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}
