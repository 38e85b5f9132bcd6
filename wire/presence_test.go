package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// messageTables is wire 7: each message's fields in order as name, presence
// code (wire 0.3) and type. "T" stands for the fields every group request
// begins with.
const messageTables = `
auth: tenant_id R string, token R string, client_flags O u16, client_features O u32, client_features_hi O u32
auth_ok: server_flags R u16, server_features O u32, server_features_hi O u32, listener_ports O ports, publish_window O u32
ok:
error: message R string, code O string, retry O string, detail O detail
unsupported: request_type R string, extension O string, request_id O u64
extension: name R string, request_id O u64, body O any
not_leader: node_id R string, addr O string, generation R u64
topology:
topology_view: brokers R brokers
stream_shards: tenant_id R string, namespace R string, stream R string, request_id R u64
stream_shards_view: shards R u32, request_id R u64, routing O routing
cache_shards: tenant_id R string, namespace R string, cache R string, request_id R u64
cache_shards_view: shards R u32, request_id R u64
shard_owners: tenant_id R string, namespace R string, name R string, kind R kind, request_id R u64
shard_owners_view: owners R owners, request_id R u64
publish: tenant_id R string, namespace R string, stream R string, payload R base64, key O base64, request_id O u64, ack O ack
publish_batch: tenant_id R string, namespace R string, stream R string, payloads R base64s, key O base64, request_id O u64, ack O ack
publish_ok: request_id R u64, offset O u64
publish_error: request_id R u64, message R string, code O string, retry O string, detail O detail
producer_init: request_id R u64
producer_init_ok: request_id R u64, producer_id R u64
publish_idempotent: tenant_id R string, namespace R string, stream R string, payloads R base64s, key O base64, request_id R u64, producer_id R u64, sequence R u64
publish_if: tenant_id R string, namespace R string, stream R string, payloads R base64s, key O base64, expected_offset R u64, request_id R u64
publish_refused: request_id R u64, reason R reason, message R string
subscribe: tenant_id R string, namespace R string, stream R string, subscription_id O u64, start O start, shard O u32, queue_capacity O u32
subscribed: subscription_id R u64, start_offset O u64, live_offset O u64, queue_capacity O u32
subscribe_cursor_error: reason R cursor, requested R u64, available R u64
event_stream_hello: subscription_id R u64
event: tenant_id R string, namespace R string, stream R string, payload R base64, offset O u64
event_batch: tenant_id R string, namespace R string, stream R string, payloads R base64s, base_offset O u64
shard_moved: subscription_id R u64, resume_from O u64, node_id O string, addr O string, generation R u64
subscription_lagged: subscription_id R u64, resume_from R u64
cache_put: tenant_id R string, namespace R string, cache R string, key R string, value R base64, request_id O u64, ttl_ms N? u64
cache_get: tenant_id R string, namespace R string, cache R string, key R string, request_id O u64
cache_delete: tenant_id R string, namespace R string, cache R string, key R string, request_id O u64
cache_value: tenant_id R string, namespace R string, cache R string, key R string, value N base64, request_id O u64, version O u64
cache_ok: request_id R u64
cache_put_if: tenant_id R string, namespace R string, cache R string, key R string, value R base64, ttl_ms O u64, condition R condition, request_id R u64
cache_delete_if: tenant_id R string, namespace R string, cache R string, key R string, version R u64, request_id R u64
cache_condition_result: applied R bool, version O u64, request_id R u64
cache_watch: tenant_id R string, namespace R string, cache R string, key O string, prefix O string, shard O u32, from_offset O u64, retained Z bool, subscription_id O u64
cache_watch_started: subscription_id R u64, resume_offset R u64, resnapshot D bool, retained_count O u64
cache_event: key R string, value O base64, offset R u64, expires_at_millis D u64
cache_watch_lagged: resume_from R u64
counter_add: tenant_id R string, namespace R string, cache R string, key R string, delta R i64, request_id R u64
counter_get: tenant_id R string, namespace R string, cache R string, key R string, request_id R u64
counter_value: value O i64, request_id R u64
commit: tenant_id R string, namespace R string, stream R string, entity_key R base64, event R base64, changes D changes, request_id R u64, expected_offset O u64
commit_ok: request_id R u64, offset R u64
state_get: tenant_id R string, namespace R string, stream R string, entity_key R base64, key R string, request_id R u64
state_value: value N base64, version O u64, as_of O u64, request_id R u64
offset_for_time: tenant_id R string, namespace R string, stream R string, shard R u32, at_micros R u64, request_id R u64
offset_value: offset O u64, request_id R u64
stream_read: tenant_id R string, namespace R string, stream R string, shard R u32, from R u64, end O u64, max_records Z u32, max_bytes Z u64, request_id R u64
stream_records: records R streamrecords, next_offset R u64, request_id R u64
group_poll: T, max_records R u32, wait_ms D u64, request_id R u64, consumer O string, reclaim Z bool, visibility_ms Z u64
group_ack: T, offset R u64, request_id R u64
group_nack: T, offset R u64, request_id R u64, delay_ms Z u64, attempts Z u32
group_extend: T, offset R u64, attempts R u32, extend_ms R u64, request_id R u64
group_dead_letter: T, offset R u64, request_id R u64
group_dead_letters: T, request_id R u64
group_discard: T, offset R u64, request_id R u64
group_redrive: T, offset R u64, request_id R u64
group_seek: T, start R start, if_new Z bool, request_id R u64
group_describe: T, request_id R u64
group_delete: T, request_id R u64
group_records: records R grouprecords, request_id R u64
group_dead_letter_list: offsets R offsets, request_id R u64
group_extended: visible_ms R u64, request_id R u64
group_position: offset R u64, moved R bool, request_id R u64
group_info: committed O u64, tail R u64, in_flight R u64, owed R u64, dead_letters R u64, request_id R u64
group_deleted: existed R bool, request_id R u64
shard_inspect: tenant_id R string, namespace R string, name R string, kind R kind, shard R u32, request_id R u64
shard_inspect_info: request_id R u64, view R view
subscriptions_list: request_id R u64, filter O filter, limit O u32, cursor O cursorobject
subscriptions_list_info: request_id R u64, node_id R string, subscriptions R subscriptions, next_cursor O cursorobject
`

// objectTables is likewise for the objects inside messages.
const objectTables = `
detail: reason O string, retry_after_ms O u64
broker: node_id R string, addr R string
owner: shard R u32, node_id O string, addr O string, generation R u64, unavailable O string
put: op R opput, key R string, value O base64
streamrecord: offset R u64, payload R base64, publisher O string, timestamp_micros R u64
grouprecord: offset R u64, payload R base64, attempts D u32, skipped_before Z u64, publisher O string, timestamp_micros O u64
view: node_id R string, shards R u32, role R string, phase R string, serving R bool, reason O string, detail O string, generation O u64, assignment O assignment, fence O fence, lease O lease, tail O u64, committed O u64, accepted_generation O u64, replicas O replicas
assignment: generation R u64, leader R string, replicas R strings, draining Z bool, successor O string
fence: took R strings, pending R strings, attempts R u32, retry_in_ms O u64
lease: held R bool, remaining_ms R u64
replica: node_id R string, role R string, next_offset O u64, lag O u64, fence O bool, state R string, halted O string
filter: tenant_id O string, namespace O string, stream O string, shard O u32, principal O string, dropping Z bool
cursorobject: tenant_id R string, namespace R string, stream R string, shard R u32, subscriber_id R u64
subscription: tenant_id R string, namespace R string, stream R string, shard R u32, subscriber_id R u64, subscription_id O u64, connection O u64, peer O string, principal O string, policy R string, depth R u64, capacity R u64, dropped R u64, position O u64, tail R u64, age_ms R u64
`

const groupFields = "tenant_id R string, namespace R string, stream R string, shard R u32, group R string"

// arrays of the objects above.
var arrayElements = map[string]string{
	"brokers": "broker", "owners": "owner", "changes": "put", "streamrecords": "streamrecord",
	"grouprecords": "grouprecord", "replicas": "replica", "subscriptions": "subscription",
}

// values of the simple types.
var simpleValues = map[string]string{
	"string": `"é<\"\u0001"`, "base64": `"AP8="`, "base64s": `["","AP8="]`, "strings": `["a",""]`, "bool": "true",
	"u16": "65535", "u32": "4294967295", "u64": "18446744073709551615", "i64": "-9223372036854775808",
	"ports": "[1,65535]", "offsets": "[0,18446744073709551615]", "any": `{"x":[1.50]}`,
	"kind": `"cache"`, "routing": `"jump_hash"`, "ack": `"none"`, "cursor": `"in_future"`, "opput": `"put"`,
	"start": `{"offset":18446744073709551615}`, "condition": `{"version":7}`, "reason": `{"not_leader":{"node_id":"b","addr":"a:1"}}`,
}

type tableField struct{ name, presence, kind string }

func parseTable(text string) (order []string, tables map[string][]tableField) {
	tables = map[string][]tableField{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		rest = strings.Replace(strings.TrimSpace(rest), "T,", groupFields+",", 1)
		order = append(order, name)
		tables[name] = nil
		for _, f := range strings.Split(rest, ", ") {
			if parts := strings.Fields(f); len(parts) == 3 {
				tables[name] = append(tables[name], tableField{parts[0], parts[1], parts[2]})
			}
		}
	}
	return order, tables
}

func value(kind string, objects map[string][]tableField) string {
	if v, ok := simpleValues[kind]; ok {
		return v
	}
	if element, ok := arrayElements[kind]; ok {
		return "[" + value(element, objects) + "," + value(element, objects) + "]"
	}
	if _, ok := objects[kind]; !ok {
		panic("no value of kind " + kind)
	}
	return "{" + strings.Join(members(objects[kind], objects), ",") + "}"
}

func members(fields []tableField, objects map[string][]tableField) []string {
	var list []string
	for _, f := range fields {
		list = append(list, `"`+f.name+`":`+value(f.kind, objects))
	}
	return list
}

func without(list []string, i int) []string {
	return append(append([]string(nil), list[:i]...), list[i+1:]...)
}

func with(list []string, i int, member string) []string {
	list = append([]string(nil), list...)
	list[i] = member
	return list
}

// An objectTest is one message, or one object inside a message, taken through
// everything its table says.
type objectTest struct {
	t      *testing.T
	name   string
	fields []tableField
	list   []string            // the canonical members
	wrap   func(string) string // members to a payload
}

func (o objectTest) payload(list []string) []byte {
	return []byte(o.wrap(strings.Join(list, ",")))
}

// same checks that list reads as a message that is written as canonical.
func (o objectTest) same(what string, list, canonical []string) {
	o.t.Helper()
	payload := o.payload(list)
	m, err := ParseMessage(payload)
	if err != nil {
		o.t.Errorf("%s: %s: %s: %v", o.name, what, payload, err)
		return
	}
	if got, want := AppendMessage(nil, m)[HeaderSize:], o.payload(canonical); !bytes.Equal(got, want) {
		o.t.Errorf("%s: %s: written as %s\nwant %s", o.name, what, got, want)
	}
	decoded, err := new(Decoder).Decode(payload)
	if err != nil || !reflect.DeepEqual(decoded, m) {
		o.t.Errorf("%s: %s: a Decoder reads %+v, %v", o.name, what, decoded, err)
	}
}

func (o objectTest) refused(what, field string, list []string) {
	o.t.Helper()
	payload := o.payload(list)
	m, err := ParseMessage(payload)
	var fieldErr *FieldError
	if !errors.As(err, &fieldErr) || !errors.Is(err, ErrMalformed) {
		o.t.Errorf("%s: %s: %s read as %+v, %v", o.name, what, payload, m, err)
		return
	}
	if last := fieldErr.Field[strings.LastIndexByte(fieldErr.Field, '.')+1:]; last != field {
		o.t.Errorf("%s: %s: error names %q, want %q", o.name, what, fieldErr.Field, field)
	}
}

// unset is how a field without a value is written; empty when it is left out.
func (f tableField) unset() string {
	switch f.presence {
	case "N", "N?":
		return `"` + f.name + `":null`
	case "D":
		zero := map[string]string{"bool": "false", "changes": "[]"}[f.kind]
		if zero == "" {
			zero = "0"
		}
		return `"` + f.name + `":` + zero
	}
	return ""
}

func (o objectTest) run() {
	o.same("canonical", o.list, o.list)
	for i, f := range o.fields {
		unset := without(o.list, i)
		if u := f.unset(); u != "" {
			unset = with(o.list, i, u)
		}
		null := with(o.list, i, `"`+f.name+`":null`)
		switch f.presence {
		case "R":
			o.refused("missing", f.name, without(o.list, i))
			o.refused("null", f.name, null)
		case "N":
			o.refused("missing", f.name, without(o.list, i))
			o.same("null", null, unset)
		case "O", "N?":
			o.same("missing "+f.name, without(o.list, i), unset)
			o.same("null "+f.name, null, unset)
		case "D", "Z":
			o.same("missing "+f.name, without(o.list, i), unset)
			o.refused("null", f.name, null)
			zero := strings.Replace(f.unset(), "[]", "[ ]", 1)
			if f.presence == "Z" {
				zero = `"` + f.name + `":` + map[bool]string{true: "false", false: "0"}[f.kind == "bool"]
			}
			o.same("zero "+f.name, with(o.list, i, zero), unset)
		default:
			o.t.Fatalf("%s: presence %q", f.name, f.presence)
		}
		if f.kind != "any" {
			for _, wrong := range []string{`7.5`, `"\u0000?"`, `{"x":0}`, `[7.5]`, `[{"x":0}]`, `["\u0000?"]`, `true`, `-1`} {
				if accepts(f.kind, wrong) {
					continue
				}
				payload := o.payload(with(o.list, i, `"`+f.name+`":`+wrong))
				if m, err := ParseMessage(payload); !errors.Is(err, ErrMalformed) {
					o.t.Errorf("%s: %s read as %+v, %v", o.name, payload, m, err)
				}
			}
		}
		o.refused("twice", f.name, append(append([]string(nil), o.list...), o.list[i]))
	}
	rnd := rand.New(rand.NewPCG(3, uint64(len(o.name))))
	for range 5 {
		shuffled := append([]string(nil), o.list...)
		for i := range shuffled {
			if rnd.IntN(3) == 0 {
				shuffled[i] = fmt.Sprintf(`"x%d":[{"request_id":null,"type":[1.5,"\ud83d\ude00"]}],`, i) + shuffled[i]
			}
		}
		shuffled = append(shuffled, `"later":{}`)
		rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		o.same("shuffled with unknown members", shuffled, o.list)
	}
}

// accepts says that a value that is wrong for most kinds is right for this one.
func accepts(kind, v string) bool {
	switch kind {
	case "string":
		return v[0] == '"'
	case "bool":
		return v == "true"
	case "i64":
		return v == "-1"
	case "strings":
		return v == `["\u0000?"]`
	case "detail", "filter": // no field of theirs is required
		return v[0] == '{'
	}
	return false
}

func TestMessageTables(t *testing.T) {
	order, messages := parseTable(messageTables)
	_, objects := parseTable(objectTables)
	known := catalogue(t)
	if len(order) != len(known) {
		t.Errorf("%d tables, %d types", len(order), len(known))
	}
	for _, typ := range order {
		m := known[typ]
		if m == nil || m.MessageType() != typ {
			t.Errorf("%s is read as %T", typ, m)
			continue
		}
		head := `{"type":"` + typ + `"`
		objectTest{
			t: t, name: typ, fields: messages[typ], list: members(messages[typ], objects),
			wrap: func(list string) string {
				if list == "" {
					return head + "}"
				}
				return head + "," + list + "}"
			},
		}.run()
		// The type may come last.
		list := append(members(messages[typ], objects), `"type":"`+typ+`"`)
		last, err := ParseMessage([]byte("{" + strings.Join(list, ",") + "}"))
		if err != nil || last.MessageType() != typ {
			t.Errorf("%s: type last: %+v, %v", typ, last, err)
		}
	}
}

func TestObjectTables(t *testing.T) {
	_, objects := parseTable(objectTables)
	within := map[string]string{
		"detail":       `{"type":"error","message":"m","detail":{%s}}`,
		"broker":       `{"type":"topology_view","brokers":[{%s}]}`,
		"owner":        `{"type":"shard_owners_view","owners":[{%s}],"request_id":1}`,
		"put":          `{"type":"commit","tenant_id":"t","namespace":"n","stream":"s","entity_key":"","event":"","changes":[{%s}],"request_id":1}`,
		"streamrecord": `{"type":"stream_records","records":[{%s}],"next_offset":1,"request_id":1}`,
		"grouprecord":  `{"type":"group_records","records":[{%s}],"request_id":1}`,
		"view":         `{"type":"shard_inspect_info","request_id":1,"view":{%s}}`,
		"filter":       `{"type":"subscriptions_list","request_id":1,"filter":{%s}}`,
		"cursorobject": `{"type":"subscriptions_list","request_id":1,"cursor":{%s}}`,
		"subscription": `{"type":"subscriptions_list_info","request_id":1,"node_id":"n","subscriptions":[{%s}]}`,
	}
	for inner, field := range map[string]string{"assignment": "assignment", "fence": "fence", "lease": "lease", "replica": "replicas"} {
		open, end := "{", "}"
		if inner == "replica" {
			open, end = "[{", "}]"
		}
		within[inner] = `{"type":"shard_inspect_info","request_id":1,"view":{"node_id":"","shards":1,"role":"r","phase":"p","serving":true,"` +
			field + `":` + open + "%s" + end + `}}`
	}
	for name, fields := range objects {
		if within[name] == "" {
			t.Fatalf("no message has a %s", name)
		}
		if name == "put" {
			fields = fields[:2] // the value is told by the op: TestStateChanges
		}
		objectTest{
			t: t, name: name, fields: fields, list: members(objects[name], objects),
			wrap: func(list string) string { return fmt.Sprintf(within[name], list) },
		}.run()
	}
}

func TestStateChanges(t *testing.T) {
	payload := func(change string) []byte {
		return []byte(`{"type":"commit","tenant_id":"t","namespace":"n","stream":"s","entity_key":"","event":"","changes":[` + change + `],"request_id":1}`)
	}
	deleted := &StateChange{Delete: true, Key: []byte("k")}
	table := map[string]*StateChange{
		`{"op":"put","key":"k","value":""}`:        {Key: []byte("k"), Value: []byte{}},
		`{"op":"put","key":"","value":"YQ=="}`:     {Key: []byte{}, Value: []byte("a")},
		`{"op":"delete","key":"k"}`:                deleted,
		`{"op":"delete","key":"k","value":"YQ=="}`: deleted, // not its member: ignored
		`{"value":"YQ==","key":"k","op":"delete"}`: deleted,
		`{"op":"put","key":"k"}`:                   nil,
		`{"op":"put","key":"k","value":null}`:      nil,
		`{"op":"merge","key":"k","value":""}`:      nil,
		`{"key":"k","value":""}`:                   nil,
	}
	for change, want := range table {
		m, err := ParseMessage(payload(change))
		if want == nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %+v, %v", change, m, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(m.(*Commit).Changes, []StateChange{*want}) {
			t.Errorf("%s: %+v, %v", change, m, err)
			continue
		}
		if want == deleted {
			change = `{"op":"delete","key":"k"}`
		}
		if got := AppendMessage(nil, m)[HeaderSize:]; !bytes.Equal(got, payload(change)) {
			t.Errorf("%s: written as %s", change, got)
		}
	}
}
