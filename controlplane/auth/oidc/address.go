package oidc

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// maxURL bounds an address in bytes.
const maxURL = 2048

// checkURL says why text is no address to fetch from. That it does not lead
// into a private network is seen when it is dialled.
func (o *Options) checkURL(text string) error {
	if len(text) > maxURL {
		return fmt.Errorf("the address has more than %d bytes", maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("the address is not a URL")
	case u.User != nil:
		return errors.New("the address holds credentials")
	case u.Fragment != "":
		return errors.New("the address holds a #")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("the address is not https")
	case !o.AllowInsecureHTTP:
		return errors.New("the address is not https; for a provider on this machine set FELIX_CONTROLPLANE_OIDC_ALLOW_INSECURE_HTTP")
	case !loopbackName(u.Hostname()):
		return errors.New("the address is not https, which only one on this machine may be")
	}
	return nil
}

func loopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// errAddress is what a dial into the own network ends with.
var errAddress = errors.New("the address is private; FELIX_CONTROLPLANE_OIDC_ALLOW_PRIVATE_IDP allows it")

// notPublic are ranges that netip has no name for: this network, shared
// address space, protocol assignments, benchmarking, reserved, and the IPv6
// ranges that carry IPv4 addresses or are site-local.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// mayDial judges an address after the name was resolved, so that no name can
// lead where its address may not. Link-local addresses, where clouds keep the
// credentials of machines, are refused even if private ones are allowed.
func (o *Options) mayDial(addr netip.Addr, insecure bool) bool {
	addr = addr.Unmap().WithZone("")
	switch {
	case !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast():
		return false
	case insecure:
		return o.AllowInsecureHTTP && addr.IsLoopback()
	case o.AllowPrivateIDP:
		return true
	case addr.IsLoopback():
		return o.AllowInsecureHTTP
	case addr.IsPrivate():
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(addr) {
			return false
		}
	}
	return true
}

// dialControl is called with the address that is about to be connected to.
func (o *Options) dialControl(insecure bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil || !o.mayDial(ap.Addr(), insecure) {
			return errAddress
		}
		return nil
	}
}
