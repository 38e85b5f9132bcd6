package rbac

import (
	"cmp"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// MaxDepth is how many role links are followed from a subject.
const MaxDepth = 10

// Effective is what the subjects may do together in a tenant, by their own
// policies and those of their roles, with what these imply (control plane
// 16.4). It is sorted by text and holds nothing twice. Rules that do not parse,
// do not fit or name another tenant give nothing.
func Effective(tenant string, policies []model.Policy, groupings []model.Grouping, subjects []string) []Permission {
	reached := closure(groupings, subjects)
	var perms []Permission
	for _, policy := range policies {
		if !reached[policy.Subject] {
			continue
		}
		perm, err := ParseRule(policy.Action, policy.Object)
		if err != nil || !perm.Object.Within(tenant) {
			continue
		}
		perms = append(perms, perm)
		perms = append(perms, implied(perm)...)
	}
	return sorted(perms)
}

// Within says whether a rule of the tenant may name the object: something of
// its own, or the cluster or a node.
func (o Object) Within(tenant string) bool {
	return o.Kind == KindCluster || o.Kind == KindNode || o.Tenant == tenant
}

// closure is the subjects and every role they have, over links of links.
func closure(groupings []model.Grouping, subjects []string) map[string]bool {
	roles := make(map[string][]string, len(groupings))
	for _, g := range groupings {
		roles[g.User] = append(roles[g.User], g.Role)
	}
	reached := make(map[string]bool, len(subjects))
	front := subjects
	for depth := 0; len(front) > 0 && depth <= MaxDepth; depth++ {
		var next []string
		for _, subject := range front {
			if !reached[subject] {
				reached[subject] = true
				next = append(next, roles[subject]...)
			}
		}
		front = next
	}
	return reached
}

// implied is what managing a tenant or a namespace brings with it. Only those
// two objects expand, and nothing ever implies a right over rights.
func implied(p Permission) []Permission {
	tenant, namespace := p.Object.Tenant, p.Object.Namespace
	switch {
	case p.Action == TenantManage && p.Object.Kind == KindTenant:
		namespace = Any
	case p.Action == NamespaceManage && p.Object.Kind == KindNamespace:
	default:
		return nil
	}
	perms := make([]Permission, 0, 7)
	if p.Action == TenantManage {
		perms = append(perms, Permission{NamespaceManage, Namespace(tenant, Any)})
	}
	for _, action := range []Action{StreamManage, StreamPublish, StreamSubscribe} {
		perms = append(perms, Permission{action, Stream(tenant, namespace, Any)})
	}
	for _, action := range []Action{CacheManage, CacheRead, CacheWrite} {
		perms = append(perms, Permission{action, Cache(tenant, namespace, Any)})
	}
	return perms
}

// Narrow cuts permissions down to what was asked for. nil actions or objects
// cut nothing; empty ones cut everything. An object that is wider than a
// permission leaves it as it is, a narrower one takes its place, and what
// would not be a rule any more falls out. The answer allows nothing that perms
// do not (control plane 15.3).
func Narrow(perms []Permission, actions []Action, objects []Object) []Permission {
	var kept []Permission
	for _, perm := range perms {
		if actions != nil && !slices.Contains(actions, perm.Action) {
			continue
		}
		if objects == nil {
			kept = append(kept, perm)
			continue
		}
		for _, object := range objects {
			meet, some := perm.Object.Meet(object)
			if some && ValidRule(perm.Action, meet) == nil {
				kept = append(kept, Permission{perm.Action, meet})
			}
		}
	}
	return sorted(kept)
}

// sorted orders permissions by text, which is the order in tokens, and drops
// repeats. Each text is made once: a tenant may have thousands of rules.
func sorted(perms []Permission) []Permission {
	type named struct {
		text string
		perm Permission
	}
	list := make([]named, len(perms))
	for i, p := range perms {
		list[i] = named{p.String(), p}
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.text, b.text) })
	for i, n := range list {
		perms[i] = n.perm
	}
	return slices.Compact(perms)
}
