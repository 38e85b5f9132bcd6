package raft

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// packFrom is the size from which an entry of the log is compressed, in bytes.
// Large commands are lists of records that look alike, and the library is slow
// with large messages.
const packFrom = 64 << 10

// pack makes an entry of a command. A command is JSON and begins with a brace,
// so that unpack can tell.
func pack(command []byte) ([]byte, error) {
	if len(command) < packFrom {
		return command, nil
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(command); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// unpack is the command of an entry, limit bytes at the most.
func unpack(entry []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(entry, []byte{0x1f, 0x8b}) {
		return entry, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(entry))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > limit {
		return nil, fmt.Errorf("the command has more than %d bytes", limit)
	}
	return b, nil
}
