package wire

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// strictBase64 is RFC 4648 section 4 with padding, whose unused bits must be
// zero (wire 6 rule 4). It still lets line breaks through: see decodeBase64.
var strictBase64 = base64.StdEncoding.Strict()

// An object is a JSON object under construction, at the end of a frame. Each
// method appends one member and mirrors the method of the same name of fields.
type object []byte

func (o object) name(name string) object {
	if o[len(o)-1] != '{' {
		o = append(o, ',')
	}
	o = append(o, '"')
	o = append(o, name...)
	return append(o, '"', ':')
}

func (o object) text(name, v string) object {
	return appendString(o.name(name), v)
}

func (o object) optText(name string, v Optional[string]) object {
	if !v.Set {
		return o
	}
	return o.text(name, v.Value)
}

// key writes a string held as bytes.
func (o object) key(name string, v []byte) object {
	return appendString(o.name(name), v)
}

func (o object) optKey(name string, v Optional[[]byte]) object {
	if !v.Set {
		return o
	}
	return o.key(name, v.Value)
}

func (o object) base64(name string, v []byte) object {
	return appendBase64(o.name(name), v)
}

func (o object) optBase64(name string, v Optional[[]byte]) object {
	if !v.Set {
		return o
	}
	return o.base64(name, v.Value)
}

func (o object) nullBase64(name string, v Optional[[]byte]) object {
	if !v.Set {
		return o.null(name)
	}
	return o.base64(name, v.Value)
}

// block writes a block as an array of base64 strings.
func (o object) block(name string, b Block) object {
	o = append(o.name(name), '[')
	for i, p := range b.All() {
		if i > 0 {
			o = append(o, ',')
		}
		o = appendBase64(o, p)
	}
	return append(o, ']')
}

func (o object) u64(name string, v uint64) object {
	return strconv.AppendUint(o.name(name), v, 10)
}

func (o object) u32(name string, v uint32) object { return o.u64(name, uint64(v)) }

func (o object) optU64(name string, v Optional[uint64]) object {
	if !v.Set {
		return o
	}
	return o.u64(name, v.Value)
}

func (o object) optU32(name string, v Optional[uint32]) object {
	if !v.Set {
		return o
	}
	return o.u64(name, uint64(v.Value))
}

func (o object) nullU64(name string, v Optional[uint64]) object {
	if !v.Set {
		return o.null(name)
	}
	return o.u64(name, v.Value)
}

// zeroU64 leaves a zero out.
func (o object) zeroU64(name string, v uint64) object {
	if v == 0 {
		return o
	}
	return o.u64(name, v)
}

func (o object) zeroU32(name string, v uint32) object { return o.zeroU64(name, uint64(v)) }

func (o object) i64(name string, v int64) object {
	return strconv.AppendInt(o.name(name), v, 10)
}

func (o object) optI64(name string, v Optional[int64]) object {
	if !v.Set {
		return o
	}
	return o.i64(name, v.Value)
}

func (o object) boolean(name string, v bool) object {
	return strconv.AppendBool(o.name(name), v)
}

func (o object) optBoolean(name string, v Optional[bool]) object {
	if !v.Set {
		return o
	}
	return o.boolean(name, v.Value)
}

// zeroBoolean leaves false out.
func (o object) zeroBoolean(name string, v bool) object {
	if !v {
		return o
	}
	return o.boolean(name, v)
}

func (o object) null(name string) object { return append(o.name(name), "null"...) }

// texts writes an array of strings.
func (o object) texts(name string, list []string) object {
	o = append(o.name(name), '[')
	for i, v := range list {
		if i > 0 {
			o = append(o, ',')
		}
		o = appendString(o, v)
	}
	return append(o, ']')
}

// raw writes a JSON value as it stands, or nothing when it is none.
func (o object) raw(name string, v json.RawMessage) object {
	s := scanner{data: v}
	if s.skip() != "" || s.peek() != 0 || s.pos != len(v) {
		return o
	}
	return append(o.name(name), v...)
}

// A record is a struct that stands for a JSON object.
type record interface {
	appendFields(o object) object
	readFields(f *fields)
}

// object writes a nested object.
func (o object) object(name string, r record) object {
	return appendObject(o.name(name), r)
}

func appendObject(o object, r record) object {
	return append(r.appendFields(append(o, '{')), '}')
}

// appendObjects writes an array of objects.
func appendObjects[T any, P interface {
	*T
	record
}](o object, name string, list []T) object {
	o = append(o.name(name), '[')
	for i := range list {
		if i > 0 {
			o = append(o, ',')
		}
		o = appendObject(o, P(&list[i]))
	}
	return append(o, ']')
}

// appendNumbers writes an array of numbers.
func appendNumbers[T unsigned](o object, name string, list []T) object {
	o = append(o.name(name), '[')
	for i, v := range list {
		if i > 0 {
			o = append(o, ',')
		}
		o = strconv.AppendUint(o, uint64(v), 10)
	}
	return append(o, ']')
}

func appendBase64(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = strictBase64.AppendEncode(dst, v)
	return append(dst, '"')
}

// appendString appends a JSON string. Only what JSON requires is escaped;
// invalid UTF-8 becomes U+FFFD.
func appendString[T string | []byte](dst []byte, v T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	run := 0
	for i := 0; i < len(v); {
		c := v[i]
		if c >= utf8.RuneSelf {
			n := runeLength(v[i:])
			if n == 0 {
				dst = append(append(dst, v[run:i]...), "\uFFFD"...)
				i++
				run = i
			} else {
				i += n
			}
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, v[run:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
		i++
		run = i
	}
	return append(append(dst, v[run:]...), '"')
}

// runeLength is the length of the character v starts with, 0 if it is invalid.
func runeLength[T string | []byte](v T) int {
	var first [utf8.UTFMax]byte
	n := copy(first[:], v)
	if r, size := utf8.DecodeRune(first[:n]); r != utf8.RuneError || size > 1 {
		return size
	}
	return 0
}
