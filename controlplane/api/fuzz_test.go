package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/auth"
)

// A target is one operation with a path that leads somewhere.
type target struct {
	op   *huma.Operation
	path string
}

// fuzzed is an API with a tenant, a token that may everything, and its
// operations in a fixed order.
func fuzzed(t testing.TB) (a *API, token string, targets []target) {
	a = newAPI(t)
	private, err := auth.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := auth.NewSigner("", private)
	ctx, st := context.Background(), a.o.Store
	key := model.SigningKey{KID: signer.Key().ID, Seed: private.Seed(), Public: signer.Key().Public, Status: model.KeyCurrent}
	if err := st.CreateTenant(ctx, model.Tenant{TenantID: "t"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.EnsureSigningKey(ctx, "t", key); err != nil {
		t.Fatal(err)
	}
	if err := st.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "t"}); err != nil {
		t.Fatal(err)
	}
	token, err = signer.Mint(auth.Claims{
		Tenant: "t", Subject: "s", Audience: auth.AudienceControlPlane, IssuedAt: time.Now(), Expires: time.Now().Add(24 * time.Hour),
		Permissions: []string{
			"tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*", "tenant.manage:tenant:t", "ns.manage:namespace:t/*",
			"stream.manage:stream:t/*/*", "cache.manage:cache:t/*/*", "rbac.view:tenant:t", "rbac.policy.manage:tenant:t",
			"rbac.assignment.manage:tenant:t", "token.delegate:tenant:t",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]+\}`)
	for _, s := range []*surface{a.main, a.bootstrap} {
		for path, item := range s.huma.OpenAPI().Paths {
			for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
				// Deleting the tenant would end the run.
				if op != nil && op.OperationID != "delete-tenant" && op.OperationID != "delete-namespace" {
					filled := parameter.ReplaceAllString(strings.ReplaceAll(path, "{shard}", "0"), "t")
					targets = append(targets, target{op, filled})
				}
			}
		}
	}
	slices.SortFunc(targets, func(x, y target) int { return strings.Compare(x.op.OperationID, y.op.OperationID) })
	return a, token, targets
}

// judge checks what every answer must be: a documented status, never 500, and
// our form of an error.
func judge(t *testing.T, on target, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	if _, ok := on.op.Responses[strconv.Itoa(w.Code)]; !ok || w.Code == http.StatusInternalServerError {
		t.Fatalf("%s: %s %s: answered %d: %.300s", on.op.OperationID, r.Method, r.URL, w.Code, w.Body)
	}
	if w.Code < 400 {
		return
	}
	var e ErrorBody
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == "" || e.Message == "" || e.RequestID == "" {
		t.Fatalf("%s: error without its form: %.300s", on.op.OperationID, w.Body)
	}
	if len(e.Message) > 16<<10 {
		t.Fatalf("%s: a message of %d bytes", on.op.OperationID, len(e.Message))
	}
}

func serve(a *API, on target, method, query, token, body string) (*http.Request, *httptest.ResponseRecorder) {
	r := httptest.NewRequest(method, on.path, strings.NewReader(body))
	r.URL.RawQuery = query
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler := a.Handler()
	if strings.HasPrefix(on.path, "/internal/") {
		handler = a.BootstrapHandler()
	}
	handler.ServeHTTP(w, r)
	return r, w
}

// FuzzBodies sends bodies to every operation that takes one.
func FuzzBodies(f *testing.F) {
	a, token, targets := fuzzed(f)
	targets = slices.DeleteFunc(targets, func(on target) bool { return on.op.RequestBody == nil })
	bodies := []string{
		``, `null`, `{}`, `[]`, `{"a":1}`, `{"tenant_id":"x","display_name":"y"}`, `{"tenant_id":"\u0000","display_name":"\\u0000"}`,
		`{"namespace":"n","display_name":""}`, `{"cache":"c","display_name":"d","shards":3,"consistency":"Quorum"}`,
		`{"stream":"s","kind":"Stream","shards":1,"retention":{"max_age_seconds":1,"max_size_bytes":null},"consistency":"Leader","delivery":"AtMostOnce","durable":false,"region":"r","routing":"jump_hash"}`,
		`{"retention":{"max_size_bytes":18446744073709551615}}`, `{"streams":[],"caches":[{"cache":"c","display_name":""}]}`,
		`{"node_id":"t","advertise_addr":"10.0.0.1:7000","region":"r","labels":{"a":"b"},"capacity":{"max_shards":1,"weight":0},"features":["f"]}`,
		`{"lifecycle":"draining","region":"x","labels":null}`, `{"incarnation":0}`,
		`{"incarnation":0,"shards":[{"tenant_id":"t","namespace":"t","stream":"s","shard":0,"kind":"stream","generation":0,"caught_up":["a"],"replica_offsets":[{"node_id":"a","durable_offset":1}],"drained":true,"leader_offset":1}]}`,
		`{"tenant_id":"t","namespace":"t","stream":"s","shard":0,"destination":"t","dry_run":true}`,
		`{"issuer":"https://i.example","audiences":["a"],"discovery_url":null,"jwks_url":"https://i.example/k","claim_mappings":{"subject_claim":"sub","groups_claim":"g"}}`,
		`{"subject":"role:r","object":"stream:t/t/*","action":"stream.publish"}`, `{"user":"u","role":"role:r"}`, `{"principal_id":"p"}`,
		`{"requested":["stream.publish"],"resources":["stream:t/*/*"],"audience":"felix-broker","actor_token":"x"}`, `{"refresh_token":"a.b"}`,
		`{"grant_type":"urn:ietf:params:oauth:grant-type:token-exchange","subject_token":"a.b.c","permissions":["x"]}`,
		`{"source":"a","destination":"b"}`, `{"dry_run":false}`, `{"permissions":["stream.publish:stream:t/*/*"],"ttl_seconds":60}`,
		`{"display_name":"d","idp_issuers":[],"initial_admin_principals":["p"],"policies":[],"groupings":[]}`, `{"shard":1e99}`, "{\"a\":\"\xff\"}",
	}
	for i := range targets {
		for _, body := range bodies {
			f.Add(uint8(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, index uint8, body string) {
		on := targets[int(index)%len(targets)]
		r, w := serve(a, on, on.op.Method, "", token, body)
		judge(t, on, r, w)
	})
}

// FuzzQueries sends query strings to every operation that reads.
func FuzzQueries(f *testing.F) {
	a, token, targets := fuzzed(f)
	a.Drain() // nothing waits
	targets = slices.DeleteFunc(targets, func(on target) bool { return on.op.Method != http.MethodGet })
	queries := []string{
		"", "since=1&wait_ms=5", "since=-1&wait_ms=1e9", "since=18446744073709551616", "limit=0&cursor=", "limit=5&cursor=YQ", "cursor=%ff", "lifecycle=live",
		"lifecycle=x", "label=a%3Db&label=c", "region=%00", "leader=%00", "kind=cache", "%zz", "a;b", "limit=5&limit=6", strings.Repeat("label=a&", 100),
	}
	for i := range targets {
		for _, query := range queries {
			f.Add(uint8(i), query)
		}
	}
	f.Fuzz(func(t *testing.T, index uint8, query string) {
		on := targets[int(index)%len(targets)]
		r, w := serve(a, on, on.op.Method, query, token, "")
		judge(t, on, r, w)
	})
}
