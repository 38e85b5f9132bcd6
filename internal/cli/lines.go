package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lineBuffer is how much of the input is read at once.
const lineBuffer = 64 << 10

// A lineReader cuts an input into messages, one a line. A newline ends a
// message and is no part of it; a last line without one is a message all the
// same; nothing else is touched, neither carriage returns nor blanks, and an
// empty line is an empty message. So the messages, each followed by a
// newline, are the input again, byte for byte, if it ends with a newline.
type lineReader struct {
	in  *bufio.Reader
	max int
	n   uint64
}

// newLineReader reads lines of at most maxLine bytes from in.
func newLineReader(in io.Reader, maxLine int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, lineBuffer), max: maxLine}
}

// A lineTooLongError says which line is longer than a message may be.
type lineTooLongError struct {
	Line uint64 // counted from 1
	Max  int
}

func (e *lineTooLongError) Error() string {
	return fmt.Sprintf("line %d is longer than the %d bytes a message may have", e.Line, e.Max)
}

// next returns the next line in a slice of its own, or io.EOF after the last.
// It reads no further than the line's end.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if len(line)+len(part) > l.max {
			return nil, &lineTooLongError{Line: l.n + 1, Max: l.max}
		}
		line = append(line, part...)
		switch {
		case ended:
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if len(line) == 0 {
				return nil, io.EOF
			}
		default:
			return nil, err
		}
		l.n++
		if line == nil {
			line = []byte{}
		}
		return line, nil
	}
}

// ready says whether a further whole line is at hand, so that next would not
// wait for the input.
func (l *lineReader) ready() bool {
	held, err := l.in.Peek(l.in.Buffered())
	return err == nil && bytes.IndexByte(held, '\n') >= 0
}
