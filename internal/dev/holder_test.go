package dev

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

const udpTable = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  281: 0100007F:1388 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 777 2 0000000000000000 0
  282: 0100007F:1389 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 778 2 0000000000000000 0
`

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 801 1
   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 802 1
   2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 803 1
`

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

func fakeProc() fs.FS {
	return fstest.MapFS{
		"net/udp":      {Data: []byte(udpTable)},
		"net/tcp":      {Data: []byte(tcpTable)},
		"1/cmdline":    {Data: []byte("/sbin/init\x00")},
		"1/fd/0":       link("/dev/null"),
		"4242/cmdline": {Data: []byte("/usr/local/bin/felix\x00dev\x00--port\x005000\x00")},
		"4242/fd/0":    link("/dev/null"),
		"4242/fd/7":    link("socket:[777]"),
		"500/cmdline":  {Data: []byte("server\x00")},
		"500/fd/3":     link("socket:[802]"),
		"600/cmdline":  {Data: []byte("/opt/odd name\x00" + strings.Repeat("x", 200) + "\x00")},
		"600/fd/3":     link("socket:[803]"),
		"self/fd/3":    link("socket:[777]"),
	}
}

func TestFindHolder(t *testing.T) {
	for _, tc := range []struct {
		name, network string
		port          int
		want          string
	}{
		{"udp", UDP, 5000, "pid 4242 (felix dev --port 5000)"},
		{"a listening tcp socket, not a connection on that port", TCP, 8080, "pid 600 (odd name " + strings.Repeat("x", maxCommand-len("odd name ")) + "...)"},
		{"a socket whose process is not ours to see", UDP, 5001, ""},
		{"nobody", UDP, 5002, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			holder, found := FindHolder(fakeProc(), tc.network, tc.port)
			if found != (tc.want != "") {
				t.Fatalf("found %v: %v", found, holder)
			}
			if found && holder.String() != tc.want {
				t.Errorf("holder %q, want %q", holder, tc.want)
			}
		})
	}
	if _, found := FindHolder(fstest.MapFS{}, UDP, 5000); found {
		t.Error("a holder without a /proc")
	}
}

func TestCheckPortsNamesThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("the holder is only known on Linux")
	}
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	udpAddr, tcpAddr := socket.LocalAddr(), listener.Addr()

	proc := os.DirFS("/proc")
	for _, tc := range []struct{ udp, tcp, network string }{
		{udpAddr.String(), "127.0.0.1:0", UDP},
		{"127.0.0.1:0", tcpAddr.String(), TCP},
	} {
		err := checkPorts(proc, tc.udp, tc.tcp)
		taken, ok := errors.AsType[*PortTakenError](err)
		if !ok {
			t.Fatalf("%s: error %v", tc.network, err)
		}
		if taken.Network != tc.network {
			t.Errorf("network %q, want %q", taken.Network, tc.network)
		}
		if runtime.GOOS == "linux" && (taken.Holder == nil || taken.Holder.PID != os.Getpid()) {
			t.Errorf("%s: holder %v, want this process, %d", tc.network, taken.Holder, os.Getpid())
		}
	}
	if err := checkPorts(proc, "127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Errorf("free ports: %v", err)
	}
}
