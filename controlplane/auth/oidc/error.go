package oidc

// Kind tells refusals apart where a caller decides.
type Kind uint8

// The kinds of refusals.
const (
	Malformed Kind = iota + 1 // not a token at all
	Invalid                   // a token that proves nothing
	Issuer                    // a token of an issuer that the tenant does not trust
	Keys                      // the issuer's keys could not be had now
)

// An Error is a refused token. It holds nothing of the token.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }

func malformed(message string) error { return &Error{Malformed, message} }
func invalid(message string) error   { return &Error{Invalid, message} }
