package controlplane

import (
	"strings"
	"testing"
	"time"
)

func TestARefusedNodeStops(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	b := c.broker("b1", false)
	must(t, b.try(t.Context(), func(o *Options) {
		o.Token = c.token("ops", "node.view:cluster:*", "node.manage:node:b2")
	}))
	t.Cleanup(b.stop)
	select {
	case err := <-b.agent.Failed():
		if !strings.Contains(err.Error(), `"b1"`) || !strings.Contains(err.Error(), "403") {
			t.Errorf("%v", err)
		}
	case <-time.After(patience):
		t.Fatal("a broker that is refused goes on")
	}
	// Without the right to read there is nothing to serve.
	b2 := c.broker("b2", false)
	err := b2.try(t.Context(), func(o *Options) { o.Token = c.token("ops", "node.manage:node:b2") })
	if err == nil || !strings.Contains(err.Error(), "node.view") {
		t.Errorf("%v", err)
		b2.stop()
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	good := Options{URL: c.url(), Token: c.token("ops"), NodeID: "b1", AdvertiseAddr: "10.0.0.1:7000"}
	for name, change := range map[string]func(*Options){
		"no URL":        func(o *Options) { o.URL = "" },
		"no address":    func(o *Options) { o.AdvertiseAddr = "" },
		"host name":     func(o *Options) { o.AdvertiseAddr = "host:7000" },
		"port 0":        func(o *Options) { o.ClientAddr = "10.0.0.1:0" },
		"node id":       func(o *Options) { o.NodeID = "B/1" },
		"no credential": func(o *Options) { o.Token = "" },
		"CA for http":   func(o *Options) { o.CAPEM = []byte("x") },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	a, err := New(good)
	must(t, err)
	a.Close(t.Context())
}
