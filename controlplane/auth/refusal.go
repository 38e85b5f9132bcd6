package auth

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
)

// The codes of refusals (control plane 2.1).
const (
	CodeValidation         = "validation_error"
	CodeUnauthorized       = "unauthorized"
	CodeForbidden          = "forbidden"
	CodeNotFound           = "not_found"
	CodeNotEnabled         = "not_enabled"
	CodeConflict           = "conflict"
	CodeAlreadyInitialized = "already_initialized"
	CodeCannotVerify       = "cannot_verify"
)

// A Refusal is an error that is an answer: its status, code and a message for
// people. It never holds a token.
type Refusal struct {
	Status  int
	Code    string
	Message string
	// Reason is what metrics count, one of the Reason constants; empty where
	// nothing is counted.
	Reason Reason
}

func (r *Refusal) Error() string { return r.Message }

// Reason says why a credential was refused, for the counter and the log
// (control plane 22).
type Reason string

// The reasons.
const (
	ReasonMissingToken   Reason = "missing_token"
	ReasonMalformedToken Reason = "malformed_token"
	ReasonInvalidToken   Reason = "invalid_token"
	ReasonTenantMismatch Reason = "tenant_mismatch"
	ReasonForbidden      Reason = "forbidden"
	ReasonRefreshRefused Reason = "refresh_refused"
	ReasonCannotVerify   Reason = "cannot_verify"
)

func invalid(format string, args ...any) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Code: CodeValidation, Message: fmt.Sprintf(format, args...)}
}

func unauthorized(reason Reason, message string) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Code: CodeUnauthorized, Message: message, Reason: reason}
}

func forbidden(reason Reason, message string) *Refusal {
	return &Refusal{Status: http.StatusForbidden, Code: CodeForbidden, Message: message, Reason: reason}
}

func notFound(message string) *Refusal {
	return &Refusal{Status: http.StatusNotFound, Code: CodeNotFound, Message: message}
}

func cannotVerify() *Refusal {
	return &Refusal{
		Status: http.StatusServiceUnavailable, Code: CodeCannotVerify, Reason: ReasonCannotVerify,
		Message: "this instance cannot tell now what other instances know already, such as a tenant or a key that was just made; try again, here or at another one",
	}
}

// refuse counts and logs a refused credential, and returns it.
func (s *Service) refuse(ctx context.Context, tenant string, r *Refusal) *Refusal {
	if r.Reason != "" {
		s.observer.AuthRejected(r.Reason)
		s.logger.InfoContext(ctx, "credential refused",
			slog.String("reason", string(r.Reason)), slog.String("message", r.Message), slog.String("tenant", clip(tenant)))
	}
	return r
}

// clip keeps a name that came from outside from filling a log line.
func clip(name string) string {
	const most = 253
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}
