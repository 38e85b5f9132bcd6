package config

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// addrPortValue is an ip:port, or nothing.
type addrPortValue struct{ p *string }

func (v addrPortValue) set(text string) error {
	if text != "" {
		if addr, err := netip.ParseAddrPort(text); err != nil || addr.Port() == 0 {
			return errValue
		}
	}
	*v.p = text
	return nil
}
func (v addrPortValue) text() string    { return *v.p }
func (v addrPortValue) allowed() string { return "ip:port, as in 10.0.0.4:5000, or nothing" }

// labelsValue is a list of name=value.
type labelsValue struct{ p *map[string]string }

// maxLabel bounds the name and the value of a label (control plane 3.1).
const maxLabel = 253

func (v labelsValue) set(text string) error {
	var labels map[string]string
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, value, found := strings.Cut(entry, "=")
		if _, twice := labels[name]; !found || twice || name == "" || len(name) > maxLabel || len(value) > maxLabel {
			return errValue
		}
		if labels == nil {
			labels = make(map[string]string)
		}
		labels[name] = value
	}
	*v.p = labels
	return nil
}

func (v labelsValue) text() string {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(*v.p)) {
		entries = append(entries, name+"="+(*v.p)[name])
	}
	return strings.Join(entries, ",")
}

func (v labelsValue) allowed() string {
	return "a list of name=value separated by commas, each name once"
}
