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
		"groupheld":    `{"type":"group_info","tail":1,"in_flight":0,"owed":0,"dead_letters":0,"request_id":1,"held":[{%s}]}`,
		"ackfailure":   `{"type":"group_acked","failed":[{%s}],"request_id":1}`,
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
