package oidc

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

func TestCheckIssuer(t *testing.T) {
	v, err := New(Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	lax, err := New(Options{Now: time.Now, AllowInsecureHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	for name, test := range map[string]struct {
		change func(*model.IdpIssuer)
		good   bool
		lax    bool // as it is with AllowInsecureHTTP
	}{
		"good":                   {func(*model.IdpIssuer) {}, true, true},
		"a name with a jwks_url": {func(i *model.IdpIssuer) { i.Issuer, i.JWKSURL = "accounts.example", text("https://a.example/keys") }, true, true},
		"a name without":         {func(i *model.IdpIssuer) { i.Issuer = "accounts.example" }, false, false},
		"blank":                  {func(i *model.IdpIssuer) { i.Issuer = " " }, false, false},
		"a #":                    {func(i *model.IdpIssuer) { i.Issuer = "https://a.example/#x" }, false, false},
		"a |":                    {func(i *model.IdpIssuer) { i.Issuer = "https://a.example/|google" }, false, false},
		"a blank in it":          {func(i *model.IdpIssuer) { i.Issuer = "https://a.example/ x" }, false, false},
		"too long":               {func(i *model.IdpIssuer) { i.Issuer = "https://a.example/" + strings.Repeat("x", maxURL) }, false, false},
		"http":                   {func(i *model.IdpIssuer) { i.Issuer = "http://a.example" }, false, false},
		"http on loopback":       {func(i *model.IdpIssuer) { i.Issuer = "http://127.0.0.1:1234" }, false, true},
		"http on localhost":      {func(i *model.IdpIssuer) { i.Issuer = "http://localhost:1234" }, false, true},
		"http on a look-alike":   {func(i *model.IdpIssuer) { i.Issuer = "http://localhost.example" }, false, false},
		"credentials":            {func(i *model.IdpIssuer) { i.JWKSURL = text("https://me:secret@a.example/keys") }, false, false},
		"fragment":               {func(i *model.IdpIssuer) { i.DiscoveryURL = text("https://a.example/#x") }, false, false},
		"file":                   {func(i *model.IdpIssuer) { i.JWKSURL = text("file:///etc/passwd") }, false, false},
		"no host":                {func(i *model.IdpIssuer) { i.JWKSURL = text("https:///keys") }, false, false},
		"empty url":              {func(i *model.IdpIssuer) { i.DiscoveryURL = text("") }, false, false},
		"no audience":            {func(i *model.IdpIssuer) { i.Audiences = nil }, false, false},
		"blank audience":         {func(i *model.IdpIssuer) { i.Audiences = []string{"a", " "} }, false, false},
		"too many audiences":     {func(i *model.IdpIssuer) { i.Audiences = strings.Split(strings.Repeat("a,", maxAudiences+1)+"a", ",") }, false, false},
		"blank subject claim":    {func(i *model.IdpIssuer) { i.ClaimMappings.SubjectClaim = " " }, false, false},
		"blank groups claim":     {func(i *model.IdpIssuer) { i.ClaimMappings.GroupsClaim = text("") }, false, false},
		"control in an audience": {func(i *model.IdpIssuer) { i.Audiences = []string{"a\x00"} }, false, false},
		"claims": {func(i *model.IdpIssuer) {
			i.ClaimMappings = model.ClaimMappings{SubjectClaim: "email", GroupsClaim: text("g")}
		}, true, true},
	} {
		issuer := model.IdpIssuer{Issuer: "https://a.example", Audiences: []string{"felix"}}
		test.change(&issuer)
		if err := v.CheckIssuer(issuer); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		} else if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error holds the credentials", name)
		}
		if err := lax.CheckIssuer(issuer); (err == nil) != test.lax {
			t.Errorf("%s, with http: %v", name, err)
		}
	}
}

func TestMayDial(t *testing.T) {
	for text, want := range map[string]struct{ usual, private, insecure bool }{
		"93.184.216.34":          {usual: true, private: true},
		"2606:4700::1111":        {usual: true, private: true},
		"10.1.2.3":               {private: true},
		"172.16.0.1":             {private: true},
		"192.168.1.1":            {private: true},
		"::ffff:10.1.2.3":        {private: true},
		"fd00::1":                {private: true},
		"100.64.0.1":             {private: true},
		"0.1.2.3":                {private: true},
		"192.0.0.8":              {private: true},
		"198.18.0.1":             {private: true},
		"240.0.0.1":              {private: true},
		"64:ff9b::10.0.0.1":      {private: true},
		"2002:a00:1::":           {private: true},
		"fec0::1":                {private: true},
		"::10.0.0.1":             {private: true},
		"127.0.0.1":              {private: true, insecure: true},
		"127.9.9.9":              {private: true, insecure: true},
		"::1":                    {private: true, insecure: true},
		"::ffff:127.0.0.1":       {private: true, insecure: true},
		"169.254.169.254":        {},
		"::ffff:169.254.169.254": {},
		"fe80::1":                {},
		"0.0.0.0":                {},
		"::":                     {},
		"224.0.0.1":              {},
		"ff02::1":                {},
	} {
		addr := netip.MustParseAddr(text)
		usual := (&Options{}).mayDial(addr, false)
		private := (&Options{AllowPrivateIDP: true}).mayDial(addr, false)
		insecure := (&Options{AllowInsecureHTTP: true}).mayDial(addr, true)
		if usual != want.usual || private != want.private || insecure != want.insecure {
			t.Errorf("%s: %v, %v, %v, want %+v", text, usual, private, insecure, want)
		}
		if (&Options{AllowPrivateIDP: true}).mayDial(addr, true) {
			t.Errorf("%s may be dialled without TLS", text)
		}
	}
	if (&Options{AllowPrivateIDP: true}).mayDial(netip.Addr{}, false) {
		t.Error("no address may be dialled")
	}
	if err := (&Options{}).dialControl(false)("tcp", "not an address", nil); !errors.Is(err, errAddress) {
		t.Error(err)
	}
}

// TestCacheIsBounded: a full cache gives up what nobody used for longest, but
// never what must not be fetched again yet.
func TestCacheIsBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	fetched := make(map[string]int)
	c := cache[string]{
		fetch:   func(address string) ([]byte, error) { fetched[address]++; return []byte(address), nil },
		parse:   func(body []byte) (string, error) { return string(body), nil },
		now:     func() time.Time { return now },
		entries: make(map[string]*entry[string]),
	}
	get := func(i int) error {
		address := fmt.Sprint(i)
		got, err := c.get(t.Context(), address, false)
		if err == nil && got != address {
			t.Fatalf("%s holds %s", address, got)
		}
		return err
	}
	for i := range maxCached {
		if err := get(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := get(maxCached); !errors.Is(err, errTooMany) {
		t.Fatalf("beyond the bound: %v", err)
	}
	now = now.Add(30 * time.Second)
	if err := get(0); err != nil { // used just now
		t.Fatal(err)
	}
	if err := get(maxCached); err != nil {
		t.Fatal(err)
	}
	if len(c.entries) != maxCached || fetched["0"] != 1 || c.entries["0"] == nil {
		t.Errorf("%d entries, the one just used was fetched %d times", len(c.entries), fetched["0"])
	}
}
