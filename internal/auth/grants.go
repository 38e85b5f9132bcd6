package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Grants are the permissions of one token, compiled. They are immutable and
// safe for concurrent use. A check allocates nothing, except that an object
// longer than a kilobyte (a long cache key) costs one buffer.
//
// Any permission that fits allows; there are no denials. The named checks
// (CanPublish and the rest) ask for objects of the grants' own tenant, so a
// permission that names another tenant allows nothing there. A namespace,
// stream, cache or group with a '/' in its name is never allowed: it could be
// read as two different objects.
type Grants struct {
	tenant   string
	objects  [actionCount]patternSet
	scopes   [actionCount]groupScope // of GroupConsume and GroupManage
	keyed    [actionCount]map[string]struct{}
	viewNode bool
}

// nodeViewGrant is the one spelling that lets a principal inspect nodes.
const nodeViewGrant = "node.view:cluster:*"

// A PermissionError is a permission that no broker knows how to honour; the
// token that holds it is refused as a whole (wire 17.2).
type PermissionError struct {
	Permission string
}

func (e *PermissionError) Error() string {
	const most = 128 // a log line is no place for a long one
	if len(e.Permission) > most {
		return fmt.Sprintf("unknown permission %q...", e.Permission[:most])
	}
	return fmt.Sprintf("unknown permission %q", e.Permission)
}

// CompileGrants parses the permissions of a token of tenant. The error is a
// [*PermissionError].
func CompileGrants(tenant string, perms []string) (*Grants, error) {
	perms = slices.Clone(perms)
	slices.Sort(perms)
	g := &Grants{tenant: tenant}
	for _, perm := range slices.Compact(perms) {
		action, object, ok := splitPermission(perm)
		if !ok {
			return nil, &PermissionError{Permission: perm}
		}
		g.objects[action].add(object)
		switch action {
		case GroupConsume, GroupManage:
			g.scopes[action].add(object)
		case CacheRead, CacheWrite:
			g.addKeyed(action, object)
		case NodeView:
			g.viewNode = g.viewNode || perm == nodeViewGrant
		}
	}
	return g, nil
}

// addKeyed remembers which cache an exact key grant belongs to.
func (g *Grants) addKeyed(action Action, object string) {
	path, found := strings.CutPrefix(object, "cache:"+g.tenant+"/")
	if !found || strings.Contains(object, "*") {
		return
	}
	parts := strings.SplitN(path, "/", 3)
	if len(parts) < 3 {
		return
	}
	if g.keyed[action] == nil {
		g.keyed[action] = make(map[string]struct{})
	}
	g.keyed[action][object[:len(object)-len(parts[2])]] = struct{}{}
}

// Allows says whether a permission for action fits object, which is written
// as in a permission: "stream:T/N/S". Nothing implies anything here; the named
// checks know what does.
func (g *Grants) Allows(action Action, object string) bool {
	if action == 0 || action >= actionCount {
		return false
	}
	var buf objectBuffer
	return g.objects[action].match(append(buf[:0], object...))
}

// CanPublish says whether records may be published to the stream:
// stream.publish.
func (g *Grants) CanPublish(namespace, stream string) bool {
	return g.allowsNamed(StreamPublish, "stream:", namespace, stream)
}

// CanSubscribe says whether the stream may be read, by subscription or by
// offset: stream.subscribe.
func (g *Grants) CanSubscribe(namespace, stream string) bool {
	return g.allowsNamed(StreamSubscribe, "stream:", namespace, stream)
}

// CanManageStream says whether the stream may be changed: stream.manage.
func (g *Grants) CanManageStream(namespace, stream string) bool {
	return g.allowsNamed(StreamManage, "stream:", namespace, stream)
}

// CanViewNode says whether the node and its shards may be inspected. Only a
// grant spelled exactly node.view:cluster:* does; no pattern stands for it.
func (g *Grants) CanViewNode() bool { return g.viewNode }

func (g *Grants) allowsNamed(action Action, kind, namespace, name string) bool {
	if ambiguous(namespace) || ambiguous(name) {
		return false
	}
	var buf objectBuffer
	return g.objects[action].match(g.appendObject(buf[:0], kind, namespace, name))
}

// An objectBuffer holds an object on the stack: kind, tenant, namespace and
// name at their longest, with room for a usual key or group.
type objectBuffer [1024]byte

// appendObject writes kind:tenant/namespace/name.
func (g *Grants) appendObject(dst []byte, kind, namespace, name string) []byte {
	dst = append(dst, kind...)
	dst = append(dst, g.tenant...)
	dst = append(dst, '/')
	dst = append(dst, namespace...)
	dst = append(dst, '/')
	return append(dst, name...)
}

// ambiguous says whether a name would make an object readable in two ways.
func ambiguous(name string) bool { return strings.IndexByte(name, '/') >= 0 }
