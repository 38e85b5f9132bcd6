package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config/suggest"
)

const (
	// maxFile bounds a catalog in bytes.
	maxFile = 16 << 20
	// maxFaults is how many errors of one file are told.
	maxFaults = 20
)

// ValidateName checks the name of a tenant, namespace, stream or cache; kind
// says which.
type ValidateName func(kind, name string) error

// parse reads the content of file. Key files are read by readKey, with the
// path as written, relative to the catalog's directory.
func parse(file string, data []byte, validate ValidateName, readKey func(path string) ([]byte, error)) (*Catalog, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is %d bytes long, at most %d are allowed", file, len(data), maxFile)
	}
	p := &parser{file: file, validate: validate, readKey: readKey}
	root, err := document(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := p.catalog(root)
	if len(p.faults) > 0 {
		return nil, p.err()
	}
	return c, nil
}

// document is the root of the one document in data.
func document(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty; a catalog without tenants is written \"tenants: {}\"")
	case err != nil:
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	return first.Content[0], nil
}

// A parser collects the faults of a file.
type parser struct {
	file     string
	validate ValidateName
	readKey  func(path string) ([]byte, error)
	faults   []error
}

func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s:%d: %w", p.file, n.Line, fmt.Errorf(format, args...)))
}

func (p *parser) err() error {
	if more := len(p.faults) - maxFaults; more > 0 {
		return errors.Join(append(p.faults[:maxFaults:maxFaults], fmt.Errorf("%s: and %d more errors", p.file, more))...)
	}
	return errors.Join(p.faults...)
}

// pairs calls f for every key of a mapping, which must be plain text and stand
// once.
func (p *parser) pairs(n *yaml.Node, what string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fault(n, "%s: want a mapping, found %s", what, kindOf(n))
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.fault(key, "%s: a key must be plain text", what)
			continue
		}
		if line, twice := seen[key.Value]; twice {
			p.fault(key, "%s: %s stands already in line %d", what, key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		f(key, value)
	}
}

// fields reads a mapping of settings; each is handed to its function.
func (p *parser) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) {
	p.pairs(n, what, func(key, value *yaml.Node) {
		set := known[key.Value]
		if set == nil {
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			p.fault(key, "%s: unknown key %q%s; known are %s", what, key.Value, suggest.Sentence(key.Value, names), strings.Join(names, ", "))
			return
		}
		set(value)
	})
}

// named reads a mapping whose keys are names of one kind.
func (p *parser) named(n *yaml.Node, kind, what string, f func(name string, value *yaml.Node)) {
	if isNull(n) {
		return
	}
	p.pairs(n, what, func(key, value *yaml.Node) {
		if err := p.validate(kind, key.Value); err != nil {
			p.fault(key, "%w", err)
			return
		}
		f(key.Value, value)
	})
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias, which catalogs do not have"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	default:
		return strconv.Quote(n.Value)
	}
}

func (p *parser) catalog(root *yaml.Node) *Catalog {
	c := &Catalog{}
	found := false
	p.fields(root, "catalog", map[string]func(*yaml.Node){
		"tenants": func(n *yaml.Node) {
			found = true
			p.named(n, "tenant", "tenants", func(name string, value *yaml.Node) { c.Tenants = append(c.Tenants, p.tenant(name, value)) })
		},
	})
	if !found && root.Kind == yaml.MappingNode {
		p.fault(root, "catalog: tenants is missing")
	}
	slices.SortFunc(c.Tenants, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func (p *parser) tenant(name string, n *yaml.Node) Tenant {
	t := Tenant{Name: name}
	if isNull(n) {
		return t
	}
	what := "tenant " + name
	p.fields(n, what, map[string]func(*yaml.Node){
		"keys": func(n *yaml.Node) { t.Keys = p.keys(n, what) },
		"namespaces": func(n *yaml.Node) {
			p.named(n, "namespace", what+": namespaces", func(ns string, value *yaml.Node) {
				t.Namespaces = append(t.Namespaces, p.namespace(name, ns, value))
			})
		},
	})
	slices.SortFunc(t.Namespaces, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
	return t
}

func (p *parser) namespace(tenant, name string, n *yaml.Node) Namespace {
	ns := Namespace{Name: name}
	if isNull(n) {
		return ns
	}
	path := tenant + "/" + name
	p.fields(n, "namespace "+path, map[string]func(*yaml.Node){
		"streams": func(n *yaml.Node) {
			p.named(n, "stream", "namespace "+path+": streams", func(name string, value *yaml.Node) {
				ns.Streams = append(ns.Streams, p.stream(path, name, value))
			})
		},
		"caches": func(n *yaml.Node) {
			p.named(n, "cache", "namespace "+path+": caches", func(name string, value *yaml.Node) {
				ns.Caches = append(ns.Caches, p.cache(path, name, value))
			})
		},
	})
	slices.SortFunc(ns.Streams, func(a, b Stream) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(ns.Caches, func(a, b Cache) int { return strings.Compare(a.Name, b.Name) })
	return ns
}

func (p *parser) stream(path, name string, n *yaml.Node) Stream {
	s := Stream{Name: name, Shards: 1, Routing: Modulo}
	if isNull(n) {
		return s
	}
	what := "stream " + path + "/" + name
	p.fields(n, what, map[string]func(*yaml.Node){
		"shards":       func(n *yaml.Node) { s.Shards = p.shards(n, what) },
		"routing":      func(n *yaml.Node) { s.Routing = word(p, n, what+": routing", Modulo, JumpHash) },
		"durable":      func(n *yaml.Node) { s.Durable = p.flag(n, what+": durable") },
		"retention":    func(n *yaml.Node) { s.Retention = p.retention(n, what+": retention") },
		"queue_policy": func(n *yaml.Node) { s.QueuePolicy = word(p, n, what+": queue_policy", DropNew, DropOld, Block) },
	})
	if s.Retention != (Retention{}) && !s.Durable {
		p.fault(n, "%s has a retention, which needs durable: true", what)
	}
	return s
}

func (p *parser) retention(n *yaml.Node, what string) Retention {
	var r Retention
	p.fields(n, what, map[string]func(*yaml.Node){
		"max_size_bytes": func(n *yaml.Node) { r.MaxBytes = p.positive(n, what+": max_size_bytes", math.MaxInt64) },
		"max_age_seconds": func(n *yaml.Node) {
			r.MaxAge = time.Duration(p.positive(n, what+": max_age_seconds", maxAgeSeconds)) * time.Second
		},
	})
	return r
}

// maxAgeSeconds is the longest age a duration holds.
const maxAgeSeconds = math.MaxInt64 / int64(time.Second)

// positive reads a whole number of at least 1. A 0 is refused: it could mean
// both nothing and everything.
func (p *parser) positive(n *yaml.Node, what string, most int64) int64 {
	count, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || count < 1 || count > most {
		p.fault(n, "%s is %s: want a whole number from 1 to %d, or leave it out", what, kindOf(n), most)
		return 0
	}
	return count
}

func (p *parser) cache(path, name string, n *yaml.Node) Cache {
	c := Cache{Name: name, Shards: 1}
	if isNull(n) {
		return c
	}
	what := "cache " + path + "/" + name
	p.fields(n, what, map[string]func(*yaml.Node){
		"shards": func(n *yaml.Node) { c.Shards = p.shards(n, what) },
		"durable": func(n *yaml.Node) {
			c.Backing = InMemory
			if p.flag(n, what+": durable") {
				c.Backing = OnLog
			}
		},
	})
	return c
}

func (p *parser) shards(n *yaml.Node, what string) uint32 {
	count, err := strconv.ParseUint(n.Value, 10, 32)
	if n.Kind != yaml.ScalarNode || err != nil || count < 1 || count > MaxShards {
		p.fault(n, "%s: shards is %s: want a whole number from 1 to %d", what, kindOf(n), MaxShards)
	}
	return uint32(count)
}

func (p *parser) flag(n *yaml.Node, what string) bool {
	if n.Kind == yaml.ScalarNode {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "1":
			return true
		case "false", "no", "0":
			return false
		}
	}
	p.fault(n, "%s is %s: want true or false", what, kindOf(n))
	return false
}

func word[T ~string](p *parser, n *yaml.Node, what string, words ...T) T {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
		if n.Kind == yaml.ScalarNode && n.Value == string(w) {
			return w
		}
	}
	p.fault(n, "%s is %s%s: want one of %s", what, kindOf(n), suggest.Sentence(n.Value, names), strings.Join(names, ", "))
	return ""
}

// keys reads a list of public keys, each as a file, PEM text or a JWK.
func (p *parser) keys(n *yaml.Node, what string) []auth.Key {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.fault(n, "%s: keys: want a list, found %s", what, kindOf(n))
		return nil
	}
	var keys []auth.Key
	for i, entry := range n.Content {
		keys = append(keys, p.key(entry, fmt.Sprintf("%s: key %d", what, i+1))...)
	}
	if len(keys) > auth.MaxKeys {
		p.fault(n, "%s has %d keys, at most %d are allowed", what, len(keys), auth.MaxKeys)
	}
	return keys
}

func (p *parser) key(n *yaml.Node, what string) []auth.Key {
	var content []byte
	forms := 0
	use := func(n *yaml.Node, data []byte, err error) {
		forms++
		if err != nil {
			p.fault(n, "%s: %w", what, err)
			return
		}
		content = data
	}
	p.fields(n, what, map[string]func(*yaml.Node){
		"file": func(n *yaml.Node) {
			data, err := p.keyFile(n)
			use(n, data, err)
		},
		"pem": func(n *yaml.Node) { use(n, []byte(n.Value), nil) },
		"jwk": func(n *yaml.Node) {
			data, err := jwkText(n)
			use(n, data, err)
		},
	})
	if forms != 1 {
		if n.Kind == yaml.MappingNode {
			p.fault(n, "%s: want exactly one of file, pem and jwk", what)
		}
		return nil
	}
	if content == nil {
		return nil // told already
	}
	keys, err := auth.ParsePublicKeys(content)
	if err != nil {
		p.fault(n, "%s: %w", what, err)
	}
	return keys
}

func (p *parser) keyFile(n *yaml.Node) ([]byte, error) {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return nil, errors.New("file wants a path")
	}
	path := n.Value
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(p.file), path)
	}
	data, err := p.readKey(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// jwkText is a JWK in JSON, whether it was written as text or as a mapping.
func jwkText(n *yaml.Node) ([]byte, error) {
	if n.Kind == yaml.ScalarNode {
		return []byte(n.Value), nil
	}
	var members map[string]string
	if err := n.Decode(&members); err != nil {
		return nil, errors.New("jwk wants a JWK, as text or as a mapping of text")
	}
	return json.Marshal(members)
}
