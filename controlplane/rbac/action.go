package rbac

import "github.com/felixlog/felix/internal/auth"

// An Action is what a policy lets its subject do. There is one list of actions
// in the house; brokers and the control plane share it.
type Action = auth.Action

// The actions (control plane 16.2).
const (
	StreamPublish        = auth.StreamPublish
	StreamSubscribe      = auth.StreamSubscribe
	StreamManage         = auth.StreamManage
	CacheRead            = auth.CacheRead
	CacheWrite           = auth.CacheWrite
	CacheManage          = auth.CacheManage
	GroupConsume         = auth.GroupConsume
	GroupManage          = auth.GroupManage
	NodeView             = auth.NodeView
	NodeManage           = auth.NodeManage
	NamespaceManage      = auth.NamespaceManage
	TenantManage         = auth.TenantManage
	RBACView             = auth.RBACView
	RBACPolicyManage     = auth.RBACPolicyManage
	RBACAssignmentManage = auth.RBACAssignmentManage
	TokenDelegate        = auth.TokenDelegate
)

// ParseAction finds the action of that name, case-sensitively.
func ParseAction(name string) (Action, bool) { return auth.ParseAction(name) }
