package metadata

import (
	"fmt"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
	"github.com/felixlog/felix/internal/auth"
)

// The tenants and users of the tests.
const (
	operators = "ops" // whose users may see and manage nodes
	shop      = "shop"

	operator = "operator" // of operators, and the brokers'
	admin    = "admin"    // of shop
	worker   = "worker"   // of shop, with data
)

// bootstrapSecret opens the bootstrap listeners of the tests.
const bootstrapSecret = "a secret of the test, shown by nobody else"

// inShop is the namespace that everything is in.
var inShop = model.NamespaceKey{TenantID: shop, Namespace: "default"}

func (p *plane) subject(user string) string { return auth.PrincipalID(p.idp.Issuer(), user) }

func (p *plane) beginOperators() {
	p.t.Helper()
	p.initialize(operators, operator, []model.Policy{
		{Subject: p.subject(operator), Object: "cluster:*", Action: "node.view"},
		{Subject: p.subject(operator), Object: "cluster:*", Action: "node.manage"},
		{Subject: p.subject(operator), Object: "cluster:*", Action: "tenant.manage"},
	})
	p.operator = p.exchange(operators, operator, auth.AudienceControlPlane)
}

func (p *plane) beginShop() {
	p.t.Helper()
	var rights []model.Policy
	for action, object := range map[string]string{
		"stream.publish": "stream:shop/*/*", "stream.subscribe": "stream:shop/*/*", "group.consume": "stream:shop/*/*",
		"cache.read": "cache:shop/*/*", "cache.write": "cache:shop/*/*",
	} {
		rights = append(rights, model.Policy{Subject: p.subject(worker), Object: object, Action: action})
	}
	p.initialize(shop, admin, rights)
	p.admin = p.exchange(shop, admin, auth.AudienceControlPlane)
	p.worker = p.exchange(shop, worker, auth.AudienceBroker)
	ctx, cancel := bounded(p.t)
	defer cancel()
	_, err := p.client(p.admin).CreateNamespace(ctx, model.Namespace{TenantID: shop, Namespace: inShop.Namespace, DisplayName: "default"})
	must(p.t, err)
	// A member of a group that is behind does not know the keys of a new tenant.
	for n, url := range p.urls {
		eventually(p.t, fmt.Sprintf("instance %d knows the tenant", n+1), func() error {
			_, err := onceClient(p.t, url, p.admin).Streams(ctx, inShop)
			return err
		})
	}
}

func (p *plane) initialize(tenant, user string, policies []model.Policy) {
	p.t.Helper()
	ctx, cancel := bounded(p.t)
	defer cancel()
	_, err := newClient(p.t, p.instances[0].said.Bootstrap, "").Bootstrap(ctx, tenant, bootstrapSecret, apiclient.BootstrapRequest{
		DisplayName: tenant,
		IdpIssuers: []model.IdpIssuer{{
			Issuer: p.idp.Issuer(), Audiences: []string{p.idp.Audience()}, ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"},
		}},
		InitialAdminPrincipals: []string{p.subject(user)},
		Policies:               policies,
	})
	must(p.t, err)
}

func (p *plane) exchange(tenant, user, audience string) string {
	p.t.Helper()
	var got apiclient.TokenResponse
	eventually(p.t, "exchange for "+user, func() (err error) {
		ctx, cancel := bounded(p.t)
		defer cancel()
		got, err = p.client("").Exchange(ctx, tenant, p.idp.Token(idp.Claims{"sub": user}), apiclient.ExchangeRequest{Audience: audience})
		return err
	})
	return got.FelixToken
}

// streamSpec is that of a stream with one copy.
func streamSpec(name string, shards uint32, durable bool) apiclient.StreamSpec {
	return apiclient.StreamSpec{Stream: name, Kind: model.KindStream, Shards: shards, Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: durable}
}

func (p *plane) createStream(name string, shards uint32, durable bool) model.Stream {
	p.t.Helper()
	ctx, cancel := bounded(p.t)
	defer cancel()
	s, err := p.client(p.admin).CreateStream(ctx, inShop, streamSpec(name, shards, durable))
	must(p.t, err)
	return s
}

func (p *plane) createCache(name string, shards uint32) model.Cache {
	p.t.Helper()
	ctx, cancel := bounded(p.t)
	defer cancel()
	c, err := p.client(p.admin).CreateCache(ctx, inShop, apiclient.CacheSpec{Cache: name, DisplayName: name, Shards: shards})
	must(p.t, err)
	return c
}
