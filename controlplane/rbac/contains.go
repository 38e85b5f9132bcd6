package rbac

import "strings"

// Contains says whether a scope over o covers p (control plane 16.3). It is a
// partial order. The cluster contains nodes, tenants contain what is in them,
// and neither contains anything of the other.
func (o Object) Contains(p Object) bool {
	switch o.Kind {
	case KindCluster:
		return p.Kind == KindCluster || p.Kind == KindNode
	case KindNode:
		return o == p
	}
	if o.Tenant != p.Tenant || o.Tenant == "" {
		return false
	}
	switch o.Kind {
	case KindTenant:
		return true // of p, only what belongs to a tenant names one
	case KindNamespace:
		return p.Kind != KindTenant && covers(o.Namespace, p.Namespace)
	case KindStream:
		return (p.Kind == KindStream || p.Kind == KindGroup) && o.coversName(p)
	case KindCache:
		return (p.Kind == KindCache || p.Kind == KindCacheKey) && o.coversName(p)
	case KindCacheKey:
		return p.Kind == KindCacheKey && o.coversName(p) && coversKey(o.Item, p.Item)
	case KindGroup:
		return o == p
	}
	return false
}

func (o Object) coversName(p Object) bool {
	return covers(o.Namespace, p.Namespace) && covers(o.Name, p.Name)
}

// covers compares one segment. An exact name never covers Any.
func covers(scope, name string) bool { return scope == Any || scope == name }

func coversKey(scope, key string) bool {
	prefix, wild := strings.CutSuffix(scope, Any)
	return scope == key || wild && strings.HasPrefix(key, prefix)
}

// Meet is the largest object that both o and p contain, if there is one.
func (o Object) Meet(p Object) (Object, bool) {
	switch {
	case o.Contains(p):
		return p, true
	case p.Contains(o):
		return o, true
	}
	// Neither contains the other: only wildcards of different segments can
	// still meet, as in stream:T/*/* and namespace:T/N.
	if o.Tenant != p.Tenant || o.Tenant == "" {
		return Object{}, false
	}
	if o.Kind == KindNamespace {
		o, p = p, o
	}
	if p.Kind != KindNamespace || o.Kind != KindStream && o.Kind != KindCache || o.Namespace != Any {
		return Object{}, false
	}
	o.Namespace = p.Namespace
	return o, true
}
