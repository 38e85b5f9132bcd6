package dev

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A Holder is a process that has a port open.
type Holder struct {
	PID int
	// Command is its command line, cut to a sensible length.
	Command string
}

// String names the holder: pid 4242 (felix dev).
func (h Holder) String() string {
	if h.Command == "" {
		return fmt.Sprintf("pid %d", h.PID)
	}
	return fmt.Sprintf("pid %d (%s)", h.PID, h.Command)
}

// The networks FindHolder knows.
const (
	UDP = "udp"
	TCP = "tcp"
)

// tcpListen is the state of a listening socket in /proc/net/tcp.
const tcpListen = "0A"

// maxCommand bounds the command line of a Holder, in bytes.
const maxCommand = 80

// FindHolder finds the process that has port open, by the tables of Linux's
// /proc, which proc is. It does its best: elsewhere, or when the process
// belongs to somebody else, it finds nothing.
func FindHolder(proc fs.FS, network string, port int) (Holder, bool) {
	sockets := make(map[string]bool)
	for _, table := range []string{network, network + "6"} {
		data, err := fs.ReadFile(proc, "net/"+table)
		if err != nil {
			continue
		}
		for _, inode := range socketsOn(data, port, network == TCP) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return Holder{}, false
	}
	processes, err := fs.ReadDir(proc, ".")
	if err != nil {
		return Holder{}, false
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue
		}
		files := path.Join(process.Name(), "fd")
		open, err := fs.ReadDir(proc, files)
		if err != nil {
			continue
		}
		for _, file := range open {
			target, err := fs.ReadLink(proc, path.Join(files, file.Name()))
			if err == nil && sockets[target] {
				return Holder{PID: pid, Command: commandLine(proc, process.Name())}, true
			}
		}
	}
	return Holder{}, false
}

// socketsOn lists the inodes of the sockets of a /proc/net table that are
// bound to port; of TCP sockets only those that listen.
func socketsOn(table []byte, port int, listening bool) []string {
	var inodes []string
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		// sl local_address rem_address st queues tr tm retrnsmt uid timeout inode
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		_, hexPort, found := strings.Cut(fields[1], ":")
		if !found {
			continue
		}
		bound, err := hex.DecodeString(hexPort)
		if err != nil || len(bound) != 2 || int(bound[0])<<8|int(bound[1]) != port {
			continue
		}
		if listening && fields[3] != tcpListen {
			continue
		}
		inodes = append(inodes, fields[9])
	}
	return inodes
}

// commandLine is how a process was started, its program without the path.
func commandLine(proc fs.FS, pid string) string {
	data, err := fs.ReadFile(proc, pid+"/cmdline")
	if err != nil {
		return ""
	}
	words := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
	words[0] = path.Base(words[0])
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.Join(words, " "))
	if len(line) > maxCommand {
		line = strings.ToValidUTF8(line[:maxCommand], "") + "..."
	}
	return line
}
