package controlplane

import "net"

// freePort is a UDP address on loopback that was free a moment ago.
func freePort() (string, error) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.LocalAddr().String(), nil
}
