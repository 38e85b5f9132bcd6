package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/planner"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// silent is told, and says nothing.
type silent struct{}

func (silent) RequestBegan()                                     {}
func (silent) RequestEnded()                                     {}
func (silent) Forbidden()                                        {}
func (silent) StreamChanged(model.Op)                            {}
func (silent) CacheChanged(model.Op)                             {}
func (silent) NodeChanged(model.Op)                              {}
func (silent) NodeRegistered(string)                             {}
func (silent) NodeTransitioned(model.Lifecycle, model.Lifecycle) {}
func (silent) ReportRejected(model.ReportOutcome)                {}

func newAPI(t testing.TB) *API {
	t.Helper()
	st := memory.Open(memory.Options{})
	logger := slog.New(slog.DiscardHandler)
	service, err := auth.New(auth.Options{Store: st, Now: time.Now, Random: rand.Reader, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{
		Store: st, Auth: service, Planner: planner.New(planner.Options{Store: st, Holder: "test"}), RegionID: "local",
		ValidateName: func(string, string) error { return nil }, Ready: func(context.Context) error { return nil },
		Observer: silent{}, Logger: logger, Clock: time.Now, Random: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// Every pattern of the router is in the document, and nothing else is.
func TestRouterAndDocumentAgree(t *testing.T) {
	a := newAPI(t)
	var documented []string
	for path, item := range a.main.huma.OpenAPI().Paths {
		for method, there := range map[string]bool{
			"GET": item.Get != nil, "POST": item.Post != nil, "PATCH": item.Patch != nil, "DELETE": item.Delete != nil,
			"PUT": item.Put != nil, "HEAD": item.Head != nil, "OPTIONS": item.Options != nil, "TRACE": item.Trace != nil,
		} {
			if there {
				documented = append(documented, method+" "+path)
			}
		}
	}
	slices.Sort(documented)
	routed := slices.Sorted(slices.Values(a.main.patterns))
	if !slices.Equal(documented, routed) {
		t.Errorf("documented and not routed, or the reverse:\n%s\n\n%s", strings.Join(documented, "\n"), strings.Join(routed, "\n"))
	}
}

// A rate is an address's own; an IPv6 client has one for its whole network; the
// addresses known are bounded.
func TestAddressLimits(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newAddressLimits(1, 2, func() time.Time { return now })
	take := func(remote string, want time.Duration) {
		t.Helper()
		if got := l.take(remote); got != want {
			t.Errorf("%s waits %v, want %v", remote, got, want)
		}
	}
	take("10.0.0.1:1", 0)
	take("10.0.0.1:2", 0)
	take("10.0.0.1:3", time.Second)
	take("[::ffff:10.0.0.1]:3", time.Second)
	take("10.0.0.2:3", 0)
	take("[2001:db8::1]:1", 0)
	take("[2001:db8::2]:1", 0)
	take("[2001:db8::3]:1", time.Second)
	take("[2001:db8:0:1::3]:1", 0)
	now = now.Add(time.Second)
	take("10.0.0.1:3", 0)
	take("10.0.0.1:3", time.Second)
	for i := range 3 * maxAddresses {
		l.take(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	if len(l.known) != maxAddresses || l.order.Len() != maxAddresses {
		t.Errorf("%d and %d addresses are known", len(l.known), l.order.Len())
	}
}
