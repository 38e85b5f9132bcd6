package proc

import (
	"bufio"
	"bytes"
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

// Attend reads what the parent gave as [Spec.Input] from this process's
// standard input. The returned context ends when the parent closes it, by
// Stop or by its own end.
func Attend(ctx context.Context) (context.Context, context.CancelFunc, []byte, error) {
	in := bufio.NewReader(io.LimitReader(os.Stdin, maxLine))
	input, err := in.ReadBytes('\n')
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read from parent: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel, bytes.TrimSuffix(input, []byte{'\n'}), nil
}
