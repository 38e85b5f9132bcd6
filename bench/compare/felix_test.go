package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheBrokerSeesNoStraySettings(t *testing.T) {
	base := []string{"PATH=/bin", "FELIX_QUIC_BIND=0.0.0.0:1", "GOGC=off", "GOMEMLIMIT=1", "FELIXISH=kept", "FELIX_LOG=debug"}
	got := felixBroker{poll: 200 * time.Microsecond, settings: []string{"GOGC=100"}}.environ(base)
	want := []string{"PATH=/bin", "FELIXISH=kept", "FELIX_LOG=warn", "FELIX_UDP_POLL_US=200", "GOGC=100"}
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	if base[1] != "FELIX_QUIC_BIND=0.0.0.0:1" {
		t.Error("the environment passed in was changed")
	}
}

func TestOnlyTheBrokersOfFanoutBlock(t *testing.T) {
	for _, b := range []struct {
		name   string
		broker felixBroker
		blocks bool
	}{{"default", felixBroker{}, false}, {"stalling", stallingBroker(), false}, {"lossless", losslessBroker(), true}} {
		got := slices.ContainsFunc(b.broker.settings, func(s string) bool { return strings.Contains(s, "block") })
		if got != b.blocks {
			t.Errorf("the %s broker: blocks %v, want %v", b.name, got, b.blocks)
		}
	}
}

func TestTheMemoryBoundIsMadeOfSettings(t *testing.T) {
	b := stallingBroker()
	if least := uint64(subscribers * stallQueue); b.allowed < least || b.allowed > 10*least {
		t.Errorf("allowed %d MiB on top of idle, queues alone hold %d", b.allowed>>20, least>>20)
	}
}
