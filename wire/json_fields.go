package wire

import "math/bits"

// fields takes the members of one JSON object to the fields of a struct.
//
// The struct's readFields calls one method per field, in the order of the
// message tables. A method that finds its own name pending consumes the value
// and makes the next member pending, so one walk reads an object in canonical
// order. Members in another order take further walks; a member that a whole
// walk leaves pending is unknown and is skipped.
type fields struct {
	s    *scanner
	keep *Decoder // owns text and bytes of the frequent messages; else nil
	typ  typeState

	name     []byte // of the pending member
	pending  bool
	index    int    // of the field whose method is called next
	seen     uint64 // bit i: field i has come
	required uint64 // bit i: field i must come
	lookup   int    // a walk only to name this field, or noLookup

	failed problem
	field  string // where; empty for the object as a whole
	inner  string // where inside the nested object that failed last
}

// A typeState is what a "type" member means to an object.
type typeState uint8

const (
	typeOrdinary typeState = iota // nothing: the object is nested
	typeAhead                     // it was found ahead and is passed over
	typeRead                      // it has been read; another is one too many
)

const (
	typeMember = "type"
	noLookup   = -1
)

// read reads the object whose opening brace has been consumed into r. first
// says that no member has been read yet.
func (f *fields) read(r record, first bool) {
	f.lookup = noLookup
	f.next(first)
	for {
		before := f.seen
		f.index = 0
		r.readFields(f)
		if !f.pending || f.failed != "" {
			break
		}
		if f.seen == before {
			f.done("", f.s.skip())
		}
	}
	if missing := f.required &^ f.seen; missing != 0 && f.failed == "" {
		f.lookup = bits.TrailingZeros64(missing)
		f.index = 0
		r.readFields(f)
	}
}

// next makes the next member pending, if there is one.
func (f *fields) next(first bool) {
	f.pending = false
	if f.failed != "" || f.s.accept('}') {
		return
	}
	if !first && !f.s.accept(',') {
		f.fail("", f.s.expected())
		return
	}
	name, _, p := f.s.text()
	if p == "" && !f.s.accept(':') {
		p = f.s.expected()
	}
	if p != "" {
		f.fail("", p)
		return
	}
	if f.typ != typeOrdinary && string(name) == typeMember {
		if f.typ == typeRead {
			f.fail(typeMember, badTwice)
			return
		}
		f.typ = typeRead
		f.done(typeMember, f.s.skip())
		return
	}
	f.name, f.pending = name, true
}

func (f *fields) fail(field string, p problem) {
	if f.failed == "" {
		f.failed, f.field = p, field
	}
}

// at reports whether the member called name is pending.
func (f *fields) at(name string) bool {
	i := f.index
	f.index++
	if i == f.lookup {
		f.fail(name, badMissing)
	}
	if !f.pending || f.failed != "" || string(f.name) != name {
		return false
	}
	if f.seen&(1<<i) != 0 {
		f.fail(name, badTwice)
		return false
	}
	f.seen |= 1 << i
	return true
}

// complete reports at the end of a walk that every member has been taken, which
// is the time for what depends on more than one of them.
func (f *fields) complete() bool { return !f.pending && f.failed == "" }

// must is at for a field that has to come.
func (f *fields) must(name string) bool {
	f.required |= 1 << f.index
	return f.at(name)
}

// maybe is at for a field that may be null, which is the same as absent.
func (f *fields) maybe(name string) bool {
	return f.at(name) && !f.nulled()
}

// nulled passes over a null.
func (f *fields) nulled() bool {
	if !f.s.null() {
		return false
	}
	f.next(false)
	return true
}

// done ends the reading of a value.
func (f *fields) done(name string, p problem) {
	if p == "" {
		f.next(false)
		return
	}
	if f.inner != "" {
		name += "." + f.inner
	}
	f.fail(name, p)
}
