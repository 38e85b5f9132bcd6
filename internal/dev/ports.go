package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"syscall"
)

// A PortTakenError says that a port is in use, and by whom where that could
// be found out.
type PortTakenError struct {
	Network string // UDP or TCP
	Port    int
	// Holder is the process that has it, nil when that is not known.
	Holder *Holder
}

func (e *PortTakenError) Error() string {
	if e.Holder == nil {
		return fmt.Sprintf("%s port %d is taken by another program", e.Network, e.Port)
	}
	return fmt.Sprintf("%s port %d is taken by %s", e.Network, e.Port, e.Holder)
}

// checkPorts tries whether the ports of addrs can be bound now, and says for
// the first that cannot who has it. Port 0 always can. It binds nothing for
// good: between the check and the use another program may come first.
func checkPorts(proc fs.FS, udp string, tcp ...string) error {
	packets, err := net.ListenPacket(UDP, udp)
	if err != nil {
		return portError(proc, UDP, udp, err)
	}
	packets.Close()
	for _, addr := range tcp {
		listener, err := net.Listen(TCP, addr)
		if err != nil {
			return portError(proc, TCP, addr, err)
		}
		listener.Close()
	}
	return nil
}

// portError turns a failure to bind addr into a *PortTakenError where that is
// what it is.
func portError(proc fs.FS, network, addr string, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	_, portText, splitErr := net.SplitHostPort(addr)
	port, numberErr := strconv.Atoi(portText)
	if splitErr != nil || numberErr != nil {
		return err
	}
	taken := &PortTakenError{Network: network, Port: port}
	if holder, found := FindHolder(proc, network, port); found {
		taken.Holder = &holder
	}
	return taken
}
