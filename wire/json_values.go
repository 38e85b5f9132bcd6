package wire

import (
	"encoding/binary"
	"encoding/json"
	"slices"
)

func (f *fields) text(name string, v *string) {
	if f.must(name) {
		f.readText(name, v)
	}
}

func (f *fields) optText(name string, v *Optional[string]) {
	if f.maybe(name) {
		v.Set = true
		f.readText(name, &v.Value)
	}
}

func (f *fields) readText(name string, v *string) {
	b, _, p := f.s.text()
	if p == "" {
		if f.keep != nil {
			*v = f.keep.names.intern(b)
		} else {
			*v = string(b)
		}
	}
	f.done(name, p)
}

func (f *fields) key(name string, v *[]byte) {
	if f.must(name) {
		f.readKey(name, v)
	}
}

func (f *fields) optKey(name string, v *Optional[[]byte]) {
	if f.maybe(name) {
		v.Set = true
		f.readKey(name, &v.Value)
	}
}

func (f *fields) readKey(name string, v *[]byte) {
	b, _, p := f.s.text()
	if p == "" {
		*v = append(f.room(len(b)), b...)
	}
	f.done(name, p)
}

func (f *fields) base64(name string, v *[]byte) {
	if f.must(name) {
		f.readBase64(name, v)
	}
}

func (f *fields) optBase64(name string, v *Optional[[]byte]) {
	if f.maybe(name) {
		v.Set = true
		f.readBase64(name, &v.Value)
	}
}

// nullBase64 must come but may be null.
func (f *fields) nullBase64(name string, v *Optional[[]byte]) {
	if f.must(name) && !f.nulled() {
		v.Set = true
		f.readBase64(name, &v.Value)
	}
}

func (f *fields) readBase64(name string, v *[]byte) {
	text, escaped, p := f.s.text()
	if p == "" {
		*v, p = decodeBase64(f.room(strictBase64.DecodedLen(len(text))), text, escaped)
	}
	f.done(name, p)
}

// room is an empty slice, never nil, with room for n bytes.
func (f *fields) room(n int) []byte {
	if f.keep != nil {
		return f.keep.room(n)
	}
	return make([]byte, 0, n)
}

// decodeBase64 appends the bytes that text stands for. Line breaks, which the
// library ignores, can only stand in a string that had escapes.
func decodeBase64(dst, text []byte, escaped bool) ([]byte, problem) {
	if escaped && slices.ContainsFunc(text, func(c byte) bool { return c == '\r' || c == '\n' }) {
		return nil, badBase64
	}
	dst, err := strictBase64.AppendDecode(dst, text)
	if err != nil {
		return nil, badBase64
	}
	return dst, ""
}

// block reads an array of base64 strings as a record block.
func (f *fields) block(name string, v *Block) {
	if !f.must(name) {
		return
	}
	rest := len(f.s.data) - f.s.pos
	b := make([]byte, blockCountSize, blockCountSize+strictBase64.DecodedLen(rest))
	count := uint32(0)
	p := f.elements(func() problem {
		text, escaped, p := f.s.text()
		if p != "" {
			return p
		}
		head := len(b)
		b = append(b, 0, 0, 0, 0)
		if b, p = decodeBase64(b, text, escaped); p != "" {
			return p
		}
		binary.BigEndian.PutUint32(b[head:], uint32(len(b)-head-recordSizeBytes))
		count++
		return ""
	})
	if p == "" {
		binary.BigEndian.PutUint32(b, count)
		*v = Block(b)
	}
	f.done(name, p)
}

// elements reads an array, calling read before each element.
func (f *fields) elements(read func() problem) problem {
	if !f.s.accept('[') {
		return badArray
	}
	if f.s.accept(']') {
		return ""
	}
	for {
		if p := read(); p != "" {
			return p
		}
		if f.s.accept(']') {
			return ""
		}
		if !f.s.accept(',') {
			return f.s.expected()
		}
	}
}

func (f *fields) u64(name string, v *uint64) {
	if f.must(name) {
		readUnsigned(f, name, v)
	}
}

func (f *fields) u32(name string, v *uint32) {
	if f.must(name) {
		readUnsigned(f, name, v)
	}
}

func (f *fields) optU64(name string, v *Optional[uint64]) { optUnsigned(f, name, v) }

func (f *fields) optU32(name string, v *Optional[uint32]) { optUnsigned(f, name, v) }

// zeroU64 may be absent, which is 0.
func (f *fields) zeroU64(name string, v *uint64) {
	if f.at(name) {
		readUnsigned(f, name, v)
	}
}

// zeroU32 may be absent, which is 0.
func (f *fields) zeroU32(name string, v *uint32) {
	if f.at(name) {
		readUnsigned(f, name, v)
	}
}

// An unsigned is a number no wider than 64 bits.
type unsigned interface {
	~uint16 | ~uint32 | ~uint64
}

func optUnsigned[T unsigned](f *fields, name string, v *Optional[T]) {
	if f.maybe(name) {
		v.Set = true
		readUnsigned(f, name, &v.Value)
	}
}

func readUnsigned[T unsigned](f *fields, name string, v *T) {
	u, p := f.s.unsigned(uint64(^T(0)))
	*v = T(u)
	f.done(name, p)
}

func (f *fields) i64(name string, v *int64) {
	if f.must(name) {
		f.readSigned(name, v)
	}
}

func (f *fields) optI64(name string, v *Optional[int64]) {
	if f.maybe(name) {
		v.Set = true
		f.readSigned(name, &v.Value)
	}
}

func (f *fields) readSigned(name string, v *int64) {
	i, p := f.s.signed()
	*v = i
	f.done(name, p)
}

func (f *fields) boolean(name string, v *bool) {
	if f.must(name) {
		f.readBoolean(name, v)
	}
}

func (f *fields) optBoolean(name string, v *Optional[bool]) {
	if f.maybe(name) {
		v.Set = true
		f.readBoolean(name, &v.Value)
	}
}

// zeroBoolean may be absent, which is false.
func (f *fields) zeroBoolean(name string, v *bool) {
	if f.at(name) {
		f.readBoolean(name, v)
	}
}

func (f *fields) readBoolean(name string, v *bool) {
	b, p := f.s.boolean()
	*v = b
	f.done(name, p)
}

// word reads a string that must be one of a closed set.
func word[T any](f *fields, name string, v *T, byName func(string) (T, bool)) {
	b, _, p := f.s.text()
	if p == "" {
		w, known := byName(string(b))
		if !known {
			p = badWord
		}
		*v = w
	}
	f.done(name, p)
}

func (f *fields) texts(name string, v *[]string) {
	if !f.must(name) {
		return
	}
	list := []string{}
	p := f.elements(func() problem {
		b, _, p := f.s.text()
		list = append(list, string(b))
		return p
	})
	*v = list
	f.done(name, p)
}

// unsignedList reads an array of numbers, without looking for the name.
func unsignedList[T unsigned](f *fields, name string, v *[]T) {
	list := (*v)[:0] // a Decoder's own is used again
	if list == nil {
		list = []T{}
	}
	p := f.elements(func() problem {
		u, p := f.s.unsigned(uint64(^T(0)))
		list = append(list, T(u))
		return p
	})
	*v = list
	f.done(name, p)
}

// raw keeps a value as it stands; null is nil.
func (f *fields) raw(name string, v *json.RawMessage) {
	if !f.maybe(name) {
		return
	}
	f.s.peek()
	start := f.s.pos
	p := f.s.skip()
	if p == "" {
		*v = slices.Clone(f.s.data[start:f.s.pos])
	}
	f.done(name, p)
}

// object reads a nested object, without looking for the name.
func (f *fields) object(name string, r record) {
	f.done(name, f.nested(r))
}

func (f *fields) nested(r record) problem {
	if !f.s.accept('{') {
		return badObject
	}
	inner := f.keep.nestedFields()
	*inner = fields{s: f.s, keep: f.keep}
	inner.read(r, true)
	f.inner = inner.field
	return inner.failed
}

// optObject reads a nested object that may be absent or null.
func optObject[T any, P interface {
	*T
	record
}](f *fields, name string, v *Optional[T]) {
	if f.maybe(name) {
		v.Set = true
		f.object(name, P(&v.Value))
	}
}

// readObjects reads an array of objects, without looking for the name.
func readObjects[T any, P interface {
	*T
	record
}](f *fields, name string, v *[]T) {
	list := (*v)[:0] // a Decoder's own is used again
	if list == nil {
		list = []T{}
	}
	p := f.elements(func() problem {
		list = append(list, *new(T))
		return f.nested(P(&list[len(list)-1]))
	})
	*v = list
	f.done(name, p)
}
