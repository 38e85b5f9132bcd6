package cli

import (
	"io"
	"os"
)

// An input is a file to read from, or standard input.
type input struct {
	io.Reader
	size  uint64 // in bytes, 0 where nobody knows
	close func()
}

// openInput opens a file, or standard input when its name is empty or "-". A
// person who sits there is told what is read.
func (a *App) openInput(file, what string) (*input, error) {
	if file == "" || file == "-" {
		if a.StdinTTY {
			a.remark("reading %s from the terminal; Ctrl-D ends them", what)
		}
		return &input{Reader: a.Stdin, close: func() {}}, nil
	}
	f, err := os.Open(a.abs(file))
	if err != nil {
		return nil, &Error{Exit: ExitUsage, Err: err}
	}
	in := &input{Reader: f, close: func() { f.Close() }}
	info, err := f.Stat()
	switch {
	case err != nil:
		in.close()
		return nil, err
	case info.IsDir():
		in.close()
		return nil, usageError("%s is a directory", file)
	case info.Mode().IsRegular():
		in.size = uint64(info.Size())
	}
	return in, nil
}

// readWhole reads the input to its end, as one message.
func (in *input) readWhole() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxMessageBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxMessageBytes {
		return nil, usageError("the input is longer than the %d bytes a message or value may have", maxMessageBytes)
	}
	return data, nil
}
