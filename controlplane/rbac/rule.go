package rbac

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrRule is wrapped by the errors of [ValidRule] and [ParseRule].
var ErrRule = errors.New("rule is not valid")

// scopes are what administration may be limited to.
var scopes = []Kind{KindTenant, KindNamespace, KindStream, KindCache}

// fits are the kinds of objects that each action may be allowed on (control
// plane 16.2). A pair that is not here is refused when it is written and drops
// out when it is found: expanding tenant.manage over a namespace to the tenant
// would turn a delegated administrator into the tenant's.
var fits = map[Action][]Kind{
	RBACView:             scopes,
	RBACPolicyManage:     scopes,
	RBACAssignmentManage: scopes,
	TenantManage:         {KindTenant, KindCluster},
	NamespaceManage:      {KindNamespace},
	StreamManage:         {KindStream},
	StreamPublish:        {KindStream},
	StreamSubscribe:      {KindStream},
	CacheManage:          {KindCache},
	CacheRead:            {KindCache, KindCacheKey},
	CacheWrite:           {KindCache, KindCacheKey},
	GroupConsume:         {KindStream, KindGroup},
	GroupManage:          {KindStream, KindGroup},
	NodeView:             {KindCluster},
	NodeManage:           {KindNode, KindCluster},
	TokenDelegate:        {KindTenant},
}

// ValidRule says why action cannot be allowed on an object of that kind, nil
// if it can (control plane 16.2).
func ValidRule(action Action, object Object) error {
	kinds, known := fits[action]
	if !known {
		return fmt.Errorf("%w: the action is not known", ErrRule)
	}
	if slices.Contains(kinds, object.Kind) {
		return nil
	}
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		if name := kind.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Errorf("%w: %s cannot be allowed on a %s, only on a %s",
		ErrRule, action, object.Kind, strings.Join(names, ", "))
}

// A Permission is an action on an object that fit each other.
type Permission struct {
	Action Action
	Object Object
}

// String is the permission as written in a token.
func (p Permission) String() string { return p.Action.String() + ":" + p.Object.String() }

// Compare orders permissions by their text.
func (p Permission) Compare(q Permission) int { return cmp.Compare(p.String(), q.String()) }

// ParseRule reads the action and object of a policy.
func ParseRule(action, object string) (Permission, error) {
	a, known := ParseAction(action)
	if !known {
		return Permission{}, fmt.Errorf("%w: the action is not known", ErrRule)
	}
	o, err := ParseObject(object)
	if err != nil {
		return Permission{}, err
	}
	return Permission{a, o}, ValidRule(a, o)
}

// ParsePermission reads action:object, the form of a token.
func ParsePermission(text string) (Permission, error) {
	action, object, found := strings.Cut(text, ":")
	if !found {
		return Permission{}, fmt.Errorf("%w: a permission is written action:object", ErrRule)
	}
	return ParseRule(action, object)
}
