package controlplane

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"github.com/felixlog/felix/internal/auth"
)

// openPostgres opens one more store over a database.
func openPostgres(t *testing.T, url string) store.Store {
	t.Helper()
	st, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// operator makes the tenant "ops" and a token of it that may do all that is
// done to the cluster.
func operator(t *testing.T, st store.Store) string {
	t.Helper()
	private, err := auth.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := auth.NewSigner("", private)
	if err := st.CreateTenant(t.Context(), model.Tenant{TenantID: "ops"}); err != nil {
		t.Fatal(err)
	}
	key := model.SigningKey{KID: signer.Key().ID, Seed: private.Seed(), Public: signer.Key().Public, Status: model.KeyCurrent}
	if _, err := st.EnsureSigningKey(t.Context(), "ops", key); err != nil {
		t.Fatal(err)
	}
	token, err := signer.Mint(auth.Claims{
		Tenant: "ops", Subject: "op", Audience: auth.AudienceControlPlane, IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour),
		Permissions: []string{"tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*", "tenant.manage:tenant:ops", "ns.manage:namespace:ops/*", "stream.manage:stream:ops/*/*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func typed(t *testing.T, urls string, token string) *apiclient.Client {
	t.Helper()
	c, err := apiclient.New(apiclient.Options{
		URL: urls, HTTP: client(t), Timeout: patience,
		Token: func(context.Context) (string, error) { return token, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A reader that waits on one instance sees what another instance writes.
func TestWritesOfAnotherInstanceWakeReaders(t *testing.T) {
	url := pgtest.Start(t)
	first, second := openPostgres(t, url), openPostgres(t, url)
	token := operator(t, first)
	a, b := start(t, quick(first)), start(t, quick(second))
	ca, cb := typed(t, "http://"+a.Addr(), token), typed(t, "http://"+b.Addr(), token)
	ctx := t.Context()
	if _, err := ca.CreateNamespace(ctx, model.Namespace{TenantID: "ops", Namespace: "ns"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ca.RegisterNode(ctx, apiclient.Registration{NodeID: "n1", AdvertiseAddr: "10.0.0.1:7000", Region: "local"}); err != nil {
		t.Fatal(err)
	}
	streams, err := cb.StreamsSnapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := cb.AssignmentsSnapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		what string
		err  error
	}
	got := make(chan seen, 2)
	go func() {
		p, err := cb.StreamChanges(ctx, streams.NextSeq, apiclient.MaxWait)
		got <- seen{fmt.Sprint("stream ", len(p.Items)), err}
	}()
	go func() {
		p, err := cb.AssignmentChanges(ctx, shards.NextSeq, apiclient.MaxWait)
		got <- seen{fmt.Sprint("assignment ", len(p.Items)), err}
	}()
	eventually(t, "both readers wait", func() bool {
		_, text := get(t, client(t), "http://"+b.MetricsAddr()+"/metrics")
		return strings.Contains(text, "\nfelix_inflight_requests 2\n")
	})
	ns := model.NamespaceKey{TenantID: "ops", Namespace: "ns"}
	if _, err := ca.CreateStream(ctx, ns, apiclient.StreamSpec{Stream: "s", Kind: model.KindStream, Shards: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce}); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for range 2 {
		s := <-got
		if s.err != nil {
			t.Fatal(s.err)
		}
		found[s.what] = true
	}
	if !found["stream 1"] || !found["assignment 1"] {
		t.Errorf("%v", found)
	}
}

// Of eight bootstraps at once through three instances one wins, and what is
// stored is the winner's alone.
func TestRacingBootstrapsHaveOneWinner(t *testing.T) {
	url := pgtest.Start(t)
	const secret = "the-secret-of-this-test"
	var addrs []string
	var st store.Store
	for range 3 {
		st = openPostgres(t, url)
		o := quick(st)
		o.Bootstrap.Enabled, o.Bootstrap.Token = true, secret
		addrs = append(addrs, start(t, o).BootstrapAddr())
	}
	c := client(t)
	var won atomic.Int32
	winner := -1
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			body := fmt.Sprintf(`{"display_name":"race","idp_issuers":[{"issuer":"https://idp%d.example","audiences":["a"]}],"initial_admin_principals":["p%d"]}`, i, i)
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addrs[i%3]+"/internal/bootstrap/tenants/race/initialize", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Felix-Bootstrap-Token", secret)
			res, err := c.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			var answer struct{ Code, Status string }
			if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
				t.Error(err)
			}
			switch {
			case res.StatusCode == 200 && answer.Status == "initialized":
				won.Add(1)
				mu.Lock()
				winner = i
				mu.Unlock()
			case res.StatusCode == 409 && answer.Code == "already_initialized":
			default:
				t.Errorf("%d %+v", res.StatusCode, answer)
			}
		})
	}
	wait.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d winners", won.Load())
	}
	issuers, err := st.Issuers(t.Context(), "race")
	if err != nil || len(issuers) != 1 || issuers[0].Issuer != fmt.Sprintf("https://idp%d.example", winner) {
		t.Errorf("winner %d, stored %+v, %v", winner, issuers, err)
	}
	groupings, err := st.Groupings(t.Context(), "race")
	if err != nil || len(groupings) != 1 || groupings[0].User != fmt.Sprintf("p%d", winner) {
		t.Errorf("winner %d, stored %+v, %v", winner, groupings, err)
	}
	if keys, err := st.SigningKeys(t.Context(), "race"); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// An instance that ends gives the lease of the planner back, so that another
// plans at once and not when it has run out.
func TestShutdownReleasesTheLease(t *testing.T) {
	st := openPostgres(t, pgtest.Start(t))
	o := quick(st)
	s := start(t, o)
	eventually(t, "the instance holds the lease", func() bool {
		_, text := get(t, client(t), "http://"+s.MetricsAddr()+"/metrics")
		return strings.Contains(text, "\nfelix_placement_lease_held 1\n")
	})
	if l, err := st.AcquireLease(t.Context(), "other", time.Minute); err != nil || l.Held {
		t.Fatalf("%+v %v", l, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, err := st.AcquireLease(t.Context(), "other", time.Minute); err != nil || !l.Held {
		t.Errorf("%+v %v", l, err)
	}
}
