package auth

import "strings"

// An Action is what a permission allows its holder to do to an object
// (wire 17.2).
type Action uint8

// The actions a token may carry. A broker decides on the stream, cache, group
// and node actions; the others are the control plane's and only recognised.
const (
	StreamPublish Action = iota + 1
	StreamSubscribe
	StreamManage
	CacheRead
	CacheWrite
	CacheManage
	GroupConsume
	GroupManage
	NodeView
	NodeManage
	NamespaceManage
	TenantManage
	RBACView
	RBACPolicyManage
	RBACAssignmentManage
	TokenDelegate

	actionCount
)

var actionNames = [actionCount]string{
	StreamPublish:        "stream.publish",
	StreamSubscribe:      "stream.subscribe",
	StreamManage:         "stream.manage",
	CacheRead:            "cache.read",
	CacheWrite:           "cache.write",
	CacheManage:          "cache.manage",
	GroupConsume:         "group.consume",
	GroupManage:          "group.manage",
	NodeView:             "node.view",
	NodeManage:           "node.manage",
	NamespaceManage:      "ns.manage",
	TenantManage:         "tenant.manage",
	RBACView:             "rbac.view",
	RBACPolicyManage:     "rbac.policy.manage",
	RBACAssignmentManage: "rbac.assignment.manage",
	TokenDelegate:        "token.delegate",
}

// String is the action as written in a permission.
func (a Action) String() string {
	if a == 0 || a >= actionCount {
		return "unknown"
	}
	return actionNames[a]
}

// ParseAction finds the action of that name, case-sensitively.
func ParseAction(name string) (Action, bool) {
	for a, known := range actionNames {
		if known != "" && known == name {
			return Action(a), true
		}
	}
	return 0, false
}

// splitPermission cuts a permission at its first colon.
func splitPermission(perm string) (Action, string, bool) {
	name, object, found := strings.Cut(perm, ":")
	if !found || object == "" {
		return 0, "", false
	}
	action, known := ParseAction(name)
	return action, object, known
}
