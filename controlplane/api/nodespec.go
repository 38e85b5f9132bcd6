package api

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/felixlog/felix/controlplane/model"
)

// The bounds of a node's spec (control plane 3.1).
const (
	maxNodeField = 253 // bytes of an id, a label's key or value, a zone
	maxLabels    = 64
	maxFeatures  = 64
)

// CapacityRequest bounds what placement gives a node.
type CapacityRequest struct {
	MaxShards *uint32 `json:"max_shards" required:"false" doc:"Roles, as leader or follower; null is no bound."`
	Weight    *uint32 `json:"weight" required:"false" doc:"1 where it is absent; 0 takes the node out of placement."`
}

func (r *CapacityRequest) capacity() model.Capacity {
	c := model.Capacity{Weight: 1}
	if r == nil {
		return c
	}
	c.MaxShards = r.MaxShards
	if r.Weight != nil {
		c.Weight = *r.Weight
	}
	return c
}

// checkNode says what of a node's identity and spec is not valid.
func checkNode(id string, spec model.NodeSpec) error {
	return errors.Join(
		problem("node_id", nodeIDProblem(id)),
		problem("advertise_addr", addrProblem(spec.AdvertiseAddr)),
		optional("client_addr", spec.ClientAddr, addrProblem),
		optional("kafka_addr", spec.KafkaAddr, hostPortProblem),
		problem("zone", textProblem(spec.Zone, maxNodeField)),
		problem("features", featuresProblem(spec.Features)),
		checkRegion(spec.Region), checkLabels(spec.Labels), checkCapacity(spec.Capacity),
	)
}

func checkRegion(region string) error { return problem("region", regionProblem(region)) }

func checkCapacity(c model.Capacity) error {
	if c.MaxShards != nil && *c.MaxShards == 0 {
		return errors.New("capacity.max_shards: 0; give a bound above it, or null for none")
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("labels: %d, at most %d are taken", len(labels), maxLabels)
	}
	for key, value := range labels {
		switch {
		case key == "":
			return errors.New("labels: a key is empty")
		case textProblem(key, maxNodeField) != "":
			return fmt.Errorf("labels: a key is %s", textProblem(key, maxNodeField))
		case textProblem(value, maxNodeField) != "":
			return fmt.Errorf("labels: the value of %q is %s", key, textProblem(value, maxNodeField))
		}
	}
	return nil
}

func problem(field, what string) error {
	if what == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", field, what)
}

func optional(field, value string, check func(string) string) error {
	if value == "" {
		return nil
	}
	return problem(field, check(value))
}

func nodeIDProblem(id string) string {
	if id == "" || len(id) > maxNodeField {
		return fmt.Sprintf("it has %d characters, 1 to %d are allowed", len(id), maxNodeField)
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.', c == '_':
		default:
			return "only a to z, 0 to 9, '-', '.' and '_' are allowed"
		}
	}
	return ""
}

// addrProblem says why a string is no literal ip:port.
func addrProblem(s string) string {
	addr, err := netip.ParseAddrPort(s)
	switch {
	case err != nil:
		return "write an IP address and a port, as 10.0.0.4:7000 or [fd00::4]:7000"
	case addr.Port() == 0:
		return "the port is 0"
	case addr.Addr().IsUnspecified(), addr.Addr().IsMulticast():
		return "the address is none that others can reach"
	}
	return ""
}

// hostPortProblem says why a string is no host:port.
func hostPortProblem(s string) string {
	host, port, err := net.SplitHostPort(s)
	if err != nil || len(s) > maxNodeField+8 {
		return "write a host and a port, as kafka.example:9092"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "the port is not a number from 1 to 65535"
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInHost) {
			return "the host is neither an address nor a name"
		}
	}
	return ""
}

func notInHost(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

func featuresProblem(features []string) string {
	if len(features) > maxFeatures {
		return fmt.Sprintf("%d, at most %d are taken", len(features), maxFeatures)
	}
	if slices.ContainsFunc(features, func(f string) bool { return nodeIDProblem(f) != "" }) {
		return "a name has characters other than a to z, 0 to 9, '-', '.' and '_'"
	}
	return ""
}
