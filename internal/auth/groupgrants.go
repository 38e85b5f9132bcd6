package auth

import "strings"

// A groupScope knows which streams have a grant on a group of theirs. On such
// a stream only the group grants count (wire 12.3, broker 2.4).
type groupScope struct {
	streams patternSet // fits "group:T/N/S/" when some group of S is granted
}

// add derives, from a granted object, the patterns of the streams it names
// groups of. A group's name is not empty and holds no '/', so of the object
// "group:T/N/S/G" the stream part ends at the last '/' and only what follows
// the pattern's own last '/' can stand for G:
//
//   - a literal or star after the last '/': what precedes it names the streams;
//   - a star there may also take the end of the stream part, so the pattern up
//     to that star names streams as well.
func (s *groupScope) add(object string) {
	last := strings.LastIndexByte(object, '/') + 1
	group := object[last:]
	if group == "" {
		return
	}
	s.streams.add(object[:last])
	if star := strings.IndexByte(group, '*'); star >= 0 {
		s.streams.add(object[:last+star+1])
	}
}

// CanConsumeGroup says whether the group may be polled, settled, extended and
// described, and its dead letters listed. With a group.consume grant on any
// group of the stream only such grants count; without one, group.consume or
// stream.subscribe on the stream does.
func (g *Grants) CanConsumeGroup(namespace, stream, group string) bool {
	return g.allowsGroup(GroupConsume, StreamSubscribe, namespace, stream, group)
}

// CanManageGroup says whether the group may be moved and deleted, and its dead
// letters discarded and redriven: group.manage, or stream.manage on the stream,
// with the rule of [Grants.CanConsumeGroup].
func (g *Grants) CanManageGroup(namespace, stream, group string) bool {
	return g.allowsGroup(GroupManage, StreamManage, namespace, stream, group)
}

func (g *Grants) allowsGroup(action, implied Action, namespace, stream, group string) bool {
	if ambiguous(namespace) || ambiguous(stream) || ambiguous(group) {
		return false
	}
	var buf objectBuffer
	object := append(g.appendObject(buf[:0], "group:", namespace, stream), '/')
	if g.scopes[action].streams.match(object) {
		return g.objects[action].match(append(object, group...))
	}
	object = g.appendObject(buf[:0], "stream:", namespace, stream)
	return g.objects[action].match(object) || g.objects[implied].match(object)
}
