package api

import (
	"fmt"
	"net/http"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/rbac"
)

// forbidden says what a caller would need.
func forbidden(action rbac.Action, object fmt.Stringer) *Error {
	return &Error{
		Status: http.StatusForbidden, Code: codeForbidden,
		Message: fmt.Sprintf("this needs %s over %s, which the token does not give", action, clip(object.String())),
	}
}

// clip bounds what is repeated of a request.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// check refuses a caller who may not.
func check(c *auth.Caller, action rbac.Action, object rbac.Object) error {
	if c.May(action, object) {
		return nil
	}
	return forbidden(action, object)
}

// over is a rule whose object the path names.
func over(action rbac.Action, object func(path params) rbac.Object) func(*auth.Caller, params) error {
	return func(c *auth.Caller, path params) error { return check(c, action, object(path)) }
}

// inCluster is the rule C(action) of control plane 4.
func inCluster(action rbac.Action) func(*auth.Caller, params) error {
	return over(action, func(params) rbac.Object { return rbac.Cluster() })
}

// onNode is the rule N for a node in the path. The cluster contains its nodes.
func onNode() func(*auth.Caller, params) error {
	return over(rbac.NodeManage, func(path params) rbac.Object { return rbac.Node(path("node_id")) })
}

func theTenant(path params) rbac.Object { return rbac.Tenant(path("tenant_id")) }

func theNamespace(path params) rbac.Object {
	return rbac.Namespace(path("tenant_id"), path("namespace"))
}

func theStream(path params) rbac.Object {
	return rbac.Stream(path("tenant_id"), path("namespace"), path("stream"))
}

func theCache(path params) rbac.Object {
	return rbac.Cache(path("tenant_id"), path("namespace"), path("cache"))
}

// somewhere lets a caller pass who has the action over anything that meets the
// object: the rule of filtered lists. A caller without learns nothing of what
// exists.
func somewhere(action rbac.Action, object func(path params) rbac.Object) func(*auth.Caller, params) error {
	return func(c *auth.Caller, path params) error {
		want := object(path)
		for _, scope := range c.Scopes(action) {
			if _, meets := scope.Meet(want); meets {
				return nil
			}
		}
		return forbidden(action, want)
	}
}

// visible keeps what the caller has the action over.
func visible[T any](c *auth.Caller, action rbac.Action, items []T, object func(T) rbac.Object) []T {
	kept := make([]T, 0, len(items))
	for _, item := range items {
		if c.May(action, object(item)) {
			kept = append(kept, item)
		}
	}
	return kept
}

// anyOf lets a caller pass whom one of the rules lets pass.
func anyOf(rules ...func(*auth.Caller, params) error) func(*auth.Caller, params) error {
	return func(c *auth.Caller, path params) (err error) {
		for _, rule := range rules {
			if err = rule(c, path); err == nil {
				return nil
			}
		}
		return err
	}
}
