package wire

// A Message is one JSON message (wire 7): a pointer to one of this package's
// structs, or an [*Unknown].
type Message interface {
	// MessageType is the "type" member.
	MessageType() string
	record
}

// ParseMessage reads the payload of a JSON frame (wire 6). The result owns its
// memory. A type this level does not know gives an [*Unknown] and no error;
// everything else that is not a well-formed message gives a [*FieldError], which
// is an [ErrMalformed]. It accepts messages of either direction.
func ParseMessage(payload []byte) (Message, error) {
	s := scanner{data: payload}
	return parseMessage(&s, nil)
}

// AppendMessage appends the whole frame of m: type first, then the fields in
// the order of the tables, without white space. Text that is not valid UTF-8 is
// written with U+FFFD in the place of bad bytes: check names and keys before.
func AppendMessage(dst []byte, m Message) []byte {
	start := len(dst)
	dst = AppendHeader(dst, 0, 0)
	o := append(object(dst), '{').text(typeMember, m.MessageType())
	return endFrame(append(m.appendFields(o), '}'), start)
}

// parseMessage reads the message s holds. Frequent types are read into keep,
// unless it is nil.
func parseMessage(s *scanner, keep *Decoder) (Message, error) {
	typ, state, p := readType(s)
	if p != "" {
		return nil, malformed("", "", p)
	}
	m := keep.owned(string(typ))
	if m == nil {
		keep = nil
		if m = newMessage(string(typ)); m == nil {
			m = &Unknown{Type: string(typ)}
		}
	}
	f := keep.fields()
	*f = fields{s: s, keep: keep, typ: state}
	f.read(m, state == typeAhead)
	if f.failed == "" && (s.peek() != 0 || s.pos != len(s.data)) {
		f.fail("", badSyntax)
	}
	if f.failed != "" {
		return nil, malformed(m.MessageType(), f.field, f.failed)
	}
	return m, nil
}

func malformed(message, field string, p problem) error {
	const most = 64 // an unknown type is as long as the peer likes
	if len(message) > most {
		message = cutText(message, most) + "..."
	}
	return &FieldError{Message: message, Field: field, Problem: string(p), kind: ErrMalformed}
}

// readType finds the message's type, which is valid until the next text. When it
// is the first member the scanner stands behind it, otherwise at the first member.
func readType(s *scanner) ([]byte, typeState, problem) {
	if !s.accept('{') {
		return nil, 0, badObject
	}
	start := s.pos
	for first := true; ; first = false {
		if !first && !s.accept(',') {
			if s.accept('}') {
				return nil, 0, "without a type"
			}
			return nil, 0, s.expected()
		}
		if first && s.accept('}') {
			return nil, 0, "without a type"
		}
		name, _, p := s.text()
		if p != "" {
			return nil, 0, p
		}
		found := string(name) == typeMember
		if !s.accept(':') {
			return nil, 0, s.expected()
		}
		if !found {
			if p := s.skip(); p != "" {
				return nil, 0, p
			}
			continue
		}
		typ, _, p := s.text()
		if p != "" || first {
			return typ, typeRead, p
		}
		s.pos = start
		return typ, typeAhead, ""
	}
}
