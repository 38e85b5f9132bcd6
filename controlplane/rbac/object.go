package rbac

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxObject bounds an object in bytes. It leaves room for four names and a
// cache key of a kilobyte; longer keys are granted by a prefix.
const MaxObject = 2048

// Any is the segment that stands for every name.
const Any = "*"

// Kind is what an object is.
type Kind uint8

// The kinds of objects (control plane 16.3, wire 17.2).
const (
	KindCluster Kind = iota + 1
	KindNode
	KindTenant
	KindNamespace
	KindStream
	KindCache
	KindCacheKey
	KindGroup

	kindCount
)

var kindNames = [kindCount]string{
	KindCluster: "cluster", KindNode: "node", KindTenant: "tenant", KindNamespace: "namespace",
	KindStream: "stream", KindCache: "cache", KindCacheKey: "cache", KindGroup: "group",
}

// String is the kind as written before the colon of an object.
func (k Kind) String() string {
	if k == 0 || k >= kindCount {
		return "unknown"
	}
	return kindNames[k]
}

// An Object is what an action is done to: one thing, or with [Any] all things
// of a kind within a tenant or namespace. Fields that a kind does not have are
// empty. Objects are comparable; make them with the constructors or
// [ParseObject].
type Object struct {
	Kind      Kind
	Tenant    string
	Namespace string // may be Any
	Name      string // of the node, stream or cache; of a stream or cache it may be Any
	Item      string // the group, or the cache key; a key that ends in "*" is a prefix
}

// Cluster is the one spelling of the whole cluster.
func Cluster() Object { return Object{Kind: KindCluster} }

// Node is one node.
func Node(id string) Object { return Object{Kind: KindNode, Name: id} }

// Tenant is a tenant and all that is in it.
func Tenant(tenant string) Object { return Object{Kind: KindTenant, Tenant: tenant} }

// Namespace is a namespace and all that is in it; [Any] is each of the tenant.
func Namespace(tenant, namespace string) Object {
	return Object{Kind: KindNamespace, Tenant: tenant, Namespace: namespace}
}

// Stream is a stream and its groups.
func Stream(tenant, namespace, stream string) Object {
	return Object{Kind: KindStream, Tenant: tenant, Namespace: namespace, Name: stream}
}

// Cache is a cache and its keys.
func Cache(tenant, namespace, cache string) Object {
	return Object{Kind: KindCache, Tenant: tenant, Namespace: namespace, Name: cache}
}

// Group is a consumer group of a stream.
func Group(tenant, namespace, stream, group string) Object {
	return Object{Kind: KindGroup, Tenant: tenant, Namespace: namespace, Name: stream, Item: group}
}

// String is the object as written in a policy.
func (o Object) String() string {
	switch o.Kind {
	case KindCluster:
		return "cluster:*"
	case KindNode:
		return "node:" + o.Name
	case KindTenant:
		return "tenant:" + o.Tenant
	case KindNamespace:
		return "namespace:" + o.Tenant + "/" + o.Namespace
	case KindStream, KindCache:
		return o.Kind.String() + ":" + o.Tenant + "/" + o.Namespace + "/" + o.Name
	case KindCacheKey, KindGroup:
		return o.Kind.String() + ":" + o.Tenant + "/" + o.Namespace + "/" + o.Name + "/" + o.Item
	default:
		return "unknown:"
	}
}

// ErrObject is wrapped by every error of [ParseObject].
var ErrObject = errors.New("object is not valid")

// objectForms is what a person is told to write.
const objectForms = "write cluster:*, node:ID, tenant:T, namespace:T/N, stream:T/N/S, cache:T/N/C, cache:T/N/C/KEY or group:T/N/S/G; " +
	"* stands for a whole last segment, and stream:T/*/* and cache:T/*/* for all of a tenant"

func badObject(why string) error {
	return fmt.Errorf("%w: %s; %s", ErrObject, why, objectForms)
}

// ParseObject reads an object, strictly: one spelling for each (control plane
// 16.3). Names are only checked for what would make them ambiguous; whether
// they are good names is another's business.
func ParseObject(text string) (Object, error) {
	if len(text) > MaxObject {
		return Object{}, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrObject, len(text), MaxObject)
	}
	if !utf8.ValidString(text) {
		return Object{}, badObject("it is not UTF-8")
	}
	kind, path, found := strings.Cut(text, ":")
	if !found {
		return Object{}, badObject("there is no colon")
	}
	switch kind {
	case "cluster":
		if path != Any {
			return Object{}, badObject("the cluster is written cluster:*")
		}
		return Cluster(), nil
	case "node":
		return checked(Node(path), checkName("node id", path))
	case "tenant":
		return checked(Tenant(path), checkName("tenant", path))
	case "namespace":
		return parseNamespace(path)
	case "stream", "cache", "group":
		return parseNamed(kind, path)
	default:
		return Object{}, badObject("its kind is not known")
	}
}

func parseNamespace(path string) (Object, error) {
	tenant, namespace, found := strings.Cut(path, "/")
	if !found {
		return Object{}, badObject("a namespace is written namespace:T/N")
	}
	return checked(Namespace(tenant, namespace), checkName("tenant", tenant), checkNameOrAny("namespace", namespace))
}

// parseNamed reads what lies in a namespace. A cache key is the rest of the
// text and may hold slashes; nothing else may.
func parseNamed(kind, path string) (Object, error) {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) < 3 || kind == "stream" && len(parts) != 3 || kind == "group" && len(parts) != 4 {
		return Object{}, badObject("it has too few or too many segments")
	}
	o := Object{Tenant: parts[0], Namespace: parts[1], Name: parts[2]}
	if len(parts) == 3 {
		o.Kind = KindStream
		if kind == "cache" {
			o.Kind = KindCache
		}
		if o.Namespace == Any && o.Name != Any {
			return Object{}, badObject("all namespaces go with all names")
		}
		return checked(o, checkName("tenant", o.Tenant), checkNameOrAny("namespace", o.Namespace), checkNameOrAny(kind, o.Name))
	}
	o.Item = parts[3]
	item := checkKey
	o.Kind = KindCacheKey
	if kind == "group" {
		o.Kind = KindGroup
		item = func(name string) error { return checkName("group", name) }
	}
	return checked(o, checkName("tenant", o.Tenant), checkName("namespace", o.Namespace), checkName(kind, o.Name), item(o.Item))
}

// checked is o, or the first of its faults.
func checked(o Object, faults ...error) (Object, error) {
	for _, err := range faults {
		if err != nil {
			return Object{}, err
		}
	}
	return o, nil
}

func checkNameOrAny(what, name string) error {
	if name == Any {
		return nil
	}
	return checkName(what, name)
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return badObject("the " + what + " is empty")
	case strings.ContainsAny(name, "/:*"):
		return badObject("the " + what + " holds a /, : or *")
	case strings.ContainsFunc(name, unicode.IsControl):
		return badObject("the " + what + " holds a control character")
	}
	return nil
}

// checkKey takes a cache key or a prefix of keys. The prefix of all keys is
// the cache itself, which has its own spelling.
func checkKey(key string) error {
	prefix, _ := strings.CutSuffix(key, Any)
	switch {
	case key == "" || prefix == "":
		return badObject("the key is empty; the whole cache is cache:T/N/C")
	case strings.Contains(prefix, Any):
		return badObject("a * is only allowed at the end of a key")
	case strings.ContainsFunc(prefix, unicode.IsControl):
		return badObject("the key holds a control character; grant a prefix of it")
	}
	return nil
}
