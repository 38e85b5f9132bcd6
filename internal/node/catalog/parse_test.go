package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/auth"
)

const keyText = "{kty: OKP, crv: Ed25519, kid: k1, x: 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo}"

func parseText(text string) (*Catalog, error) {
	return parse("dir/c.yml", []byte(text), validName, func(path string) ([]byte, error) {
		return nil, fmt.Errorf("no file %s", path)
	})
}

func TestExampleHoldsEverything(t *testing.T) {
	file := filepath.Join("testdata", "example.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse(file, data, validName, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Tenants) != 1 || len(c.Tenants[0].Keys) != 3 {
		t.Fatalf("catalog is %+v", c)
	}
	acme := c.Tenants[0]
	if acme.Keys[2].ID != "2026-10" || acme.Keys[1].ID != auth.Thumbprint(acme.Keys[1].Public) || !acme.Keys[1].Public.Equal(acme.Keys[2].Public) {
		t.Errorf("keys are %+v", acme.Keys)
	}
	acme.Keys = nil
	want := Tenant{Name: "acme", Namespaces: []Namespace{
		{
			Name: "default",
			Streams: []Stream{
				{Name: "clicks", Shards: 1, Routing: Modulo},
				{Name: "orders", Shards: 8, Routing: JumpHash, Durable: true, Retention: Retention{MaxBytes: 1 << 30, MaxAge: 7 * 24 * time.Hour}, QueuePolicy: Block},
			},
			Caches: []Cache{{Name: "sessions", Shards: 4, Backing: InMemory}},
		},
		{Name: "staging"},
	}}
	if !reflect.DeepEqual(acme, want) {
		t.Errorf("tenant is\n%+v, want\n%+v", acme, want)
	}
}

func TestSmallCatalogs(t *testing.T) {
	for text, want := range map[string][]string{
		"tenants: {}":                         nil,
		"tenants:":                            nil,
		"tenants: {a: }":                      {"tenant a"},
		"tenants: {a: {}, b: {namespaces: }}": {"tenant a", "tenant b"},
		"tenants: {a: {keys: [], namespaces: {n: }}}":         {"namespace a/n", "tenant a"},
		"tenants: {a: {namespaces: {n: {streams: }}}}":        {"namespace a/n", "tenant a"},
		"tenants: {a: {keys: [jwk: " + keyText + "]}}":        {"key a k1", "tenant a"},
		"tenants: {a: {namespaces: {n: {caches: {c: }}}}}":    {"cache a/n/c", "namespace a/n", "tenant a"},
		"tenants: {a: {namespaces: {n: {streams: {1: {}}}}}}": {"namespace a/n", "stream a/n/1", "tenant a"},
	} {
		c, err := parseText(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := contents(c); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestFaultsSayWhere(t *testing.T) {
	within := func(text string) string { return "tenants: {a: {namespaces: {n: " + text + "}}}" }
	for text, says := range map[string]string{
		"":                                            "dir/c.yml: the file is empty",
		"# only a comment\n":                          "the file is empty",
		"[a]":                                         "dir/c.yml:1: catalog: want a mapping, found a list",
		"{}":                                          "tenants is missing",
		"tenants: {}\n---\nx":                         "more than one YAML document",
		"tenants: {a: {}":                             "dir/c.yml: yaml:",
		"\ntenant: {}":                                `dir/c.yml:2: catalog: unknown key "tenant" (did you mean tenants?); known are tenants`,
		"tenants: [a]":                                "tenants: want a mapping, found a list",
		"tenants: {a: 1}":                             `tenant a: want a mapping, found "1"`,
		"tenants: {a b: }":                            `tenant name "a b" is not valid`,
		"tenants: {[a]: }":                            "a key must be plain text",
		"tenants:\n a: {}\n b: {}\n a: {}":            "dir/c.yml:4: tenants: a stands already in line 2",
		"tenants: {a: {key: }}":                       `unknown key "key" (did you mean keys?); known are keys, namespaces`,
		"tenants: {a: &x {}, b: *x}":                  "an alias, which catalogs do not have",
		within("{stream: {}}"):                        "did you mean streams?",
		within("{streams: {s: {}, s: {}}}"):           "s stands already in line 1",
		within("{streams: {s/t: }}"):                  `stream name "s/t" is not valid`,
		within("{caches: {'*': }}"):                   `cache name "*" is not valid`,
		within("{streams: {s: {shard: 1}}}"):          `stream a/n/s: unknown key "shard" (did you mean shards?)`,
		within("{streams: {s: {shards: 0}}}"):         `stream a/n/s: shards is "0": want a whole number from 1 to 1024`,
		within("{streams: {s: {shards: 1025}}}"):      "want a whole number from 1 to 1024",
		within("{streams: {s: {shards: -1}}}"):        "want a whole number",
		within("{streams: {s: {shards: many}}}"):      `"many"`,
		within("{streams: {s: {shards: [1]}}}"):       "shards is a list",
		within("{streams: {s: {shards: }}}"):          "shards is nothing",
		within("{streams: {s: {routing: jump}}}"):     "want one of modulo, jump_hash",
		within("{streams: {s: {routing: modul}}}"):    "did you mean modulo?",
		within("{streams: {s: {durable: maybe}}}"):    `durable is "maybe": want true or false`,
		within("{streams: {s: {queue_policy: new}}}"): "want one of drop_new, drop_old, block",
		within("{caches: {c: {routing: modulo}}}"):    `unknown key "routing"; known are durable, shards`,
		within("{caches: {c: {durable: disk}}}"):      `durable is "disk": want true or false`,
		within("{streams: {s: {durable: true, retention: {max_size_bytes: 0}}}}"):           `max_size_bytes is "0": want a whole number from 1`,
		within("{streams: {s: {durable: true, retention: {max_age_seconds: -1}}}}"):         `want a whole number from 1`,
		within("{streams: {s: {durable: true, retention: {max_age_seconds: 9223372037}}}}"): "to 9223372036",
		within("{streams: {s: {retention: {max_size_bytes: 9}}}}"):                          "stream a/n/s has a retention, which needs durable: true",
		"tenants: {a: {keys: x}}":                  `keys: want a list, found "x"`,
		"tenants: {a: {keys: [x]}}":                `tenant a: key 1: want a mapping, found "x"`,
		"tenants: {a: {keys: [{}]}}":               "want exactly one of file, pem and jwk",
		"tenants: {a: {keys: [{pem: x, jwk: y}]}}": "want exactly one of file, pem and jwk",
		"tenants: {a: {keys: [pem: x]}}":           "key 1: no key: neither PEM nor a JWK",
		"tenants: {a: {keys: [pem: ]}}":            "key 1: no key: empty",
		"tenants: {a: {keys: [jwk: '{}']}}":        "only OKP with Ed25519",
		"tenants: {a: {keys: [jwk: {x: [1]}]}}":    "jwk wants a JWK",
		"tenants: {a: {keys: [file: ]}}":           "file wants a path",
		"tenants: {a: {keys: [file: k.pem]}}":      "key 1: read key file: no file dir/k.pem",
		"tenants: {a: {keys: [file: /abs/k.pem]}}": "no file /abs/k.pem",
		"tenants: {a: {keys: [" + strings.Repeat("jwk: "+keyText+", ", auth.MaxKeys+1) + "]}}": "at most 32 are allowed",
		strings.Repeat(" ", maxFile+1): "at most 16777216 are allowed",
	} {
		c, err := parseText(text)
		if err == nil || c != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v, want an error that says %q", text, err, says)
		}
	}
}

func TestManyFaultsAreToldInPart(t *testing.T) {
	text := "tenants:\n"
	for i := range 50 {
		text += fmt.Sprintf("  a b %d:\n", i)
	}
	_, err := parseText(text)
	if err == nil || !strings.Contains(err.Error(), "and 30 more errors") || strings.Count(err.Error(), "\n") != maxFaults {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("tenants: {a: {keys: [jwk: " + keyText + "], namespaces: {n: {streams: {s: {shards: 2}}}}}}")
	f.Add("tenants: {? {a: b} : c}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseText(text)
		if (c == nil) != (err != nil) {
			t.Fatalf("catalog %v with error %v", c, err)
		}
		if c == nil {
			return
		}
		m := newModel(t)
		if change := make(applied).apply(c, m); len(change.faults) > 0 {
			t.Fatal(change.faults)
		}
	})
}
