package raft

import (
	"strings"
	"testing"
)

func TestOptions(t *testing.T) {
	good := Options{
		NodeID: 1, DataDir: "d", Peers: map[uint64]string{1: "a:1", 2: "b:1"}, BindAddr: ":1", ClusterID: "c", PeerToken: testToken,
	}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"data directory":      func(o *Options) { o.DataDir = "" },
		"node id is required": func(o *Options) { o.NodeID = 0 },
		"address to bind":     func(o *Options) { o.BindAddr = "" },
		"without peers":       func(o *Options) { o.Peers = nil },
		"not among the peers": func(o *Options) { o.NodeID = 3 },
		"same address":        func(o *Options) { o.Peers = map[uint64]string{1: "a:1", 2: "a:1"} },
		"not host:port":       func(o *Options) { o.Peers = map[uint64]string{1: "a:1", 2: ""} },
		"ids begin at 1":      func(o *Options) { o.Peers = map[uint64]string{1: "a:1", 0: "b:1"} },
		"cluster id is":       func(o *Options) { o.ClusterID = "" },
		"cluster id has":      func(o *Options) { o.ClusterID = strings.Repeat("x", 256) },
		"initial state":       func(o *Options) { o.InitialState = "fresh" },
		"at least 32":         func(o *Options) { o.PeerToken = "short" },
		"authenticated":       func(o *Options) { o.PeerToken = "" },
		"all three or none":   func(o *Options) { o.TLS.CA = "ca.pem" },
	} {
		o := good
		change(&o)
		err := o.validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		if err != nil && o.PeerToken != "" && strings.Contains(err.Error(), o.PeerToken) {
			t.Errorf("the error holds the token: %v", err)
		}
	}
	insecure := good
	insecure.PeerToken, insecure.Insecure = "", true
	if err := insecure.validate(); err != nil {
		t.Errorf("insecure peers: %v", err)
	}
}
