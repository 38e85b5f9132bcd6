package wire

// A Failure is a refusal apart from the way it travels: error, publish_error or
// a failed binary ack (wire 16). [Offer] shapes one for a client; the Failure
// methods read one from a message.
type Failure struct {
	Code Code // 0 when none was sent, or its name is unknown: see Name
	// Name is the code as it was sent. It may stay empty in a Failure that is
	// to be sent.
	Name string
	// Class says what the client may do. Zero: none was sent; on the way out,
	// the default of the code.
	Class   RetryClass
	Message string // prose
	Detail  Detail
}

// class is the class to send.
func (f Failure) class() RetryClass {
	if f.Class != 0 {
		return f.Class
	}
	return DefaultClass(f.Code)
}

// Failure reads the refusal.
func (m *Error) Failure() Failure { return m.failure(m.Message) }

// Failure reads the refusal.
func (m *PublishError) Failure() Failure { return m.failure(m.Message) }

func (m *ErrorInfo) failure(message string) Failure {
	f := Failure{Message: message, Name: m.Code.Value, Detail: m.Detail.Value}
	f.Code, _ = CodeByName(f.Name)
	switch {
	case m.Retry.Set:
		f.Class = RetryClassByName(m.Retry.Value)
	case m.Code.Set:
		f.Class = DefaultClass(f.Code)
	}
	return f
}

// Failure reads the refusal of a failed ack; an unknown class reads [Fatal].
func (a *Ack) Failure() Failure {
	f := Failure{Message: a.Message}
	if a.HasCode {
		f.Code, f.Name, f.Class = a.Code, a.Code.String(), a.Retry.Effective()
	}
	if a.HasDetail {
		f.Detail = a.Detail
	}
	return f
}
