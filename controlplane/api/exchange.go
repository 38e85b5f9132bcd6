package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// bodyTimeout is how long a client may take to send a body.
const bodyTimeout = 15 * time.Second

// An exchange is a request on its way through a route. It holds the body once
// that was read, and gives errors of the framework our statuses.
type exchange struct {
	inner
	body io.Reader
}

// inner is the framework's own; embedded under its own name it would hide its
// method Context.
type inner huma.Context

// BodyReader reads what readBody took.
func (c *exchange) BodyReader() io.Reader {
	if c.body == nil {
		return http.NoBody
	}
	return c.body
}

// SetReadDeadline does nothing: the body is here. A deadline that were left on
// the connection would end handlers that wait for the store.
func (c *exchange) SetReadDeadline(time.Time) error { return nil }

// SetStatus answers what does not fit the document as control plane 2.7 says.
func (c *exchange) SetStatus(status int) { c.inner.SetStatus(ourStatus(status)) }

// SetHeader keeps the one content type this API speaks.
func (c *exchange) SetHeader(name, value string) {
	if name == "Content-Type" && (value == "json" || strings.HasPrefix(value, "application/problem+")) {
		value = "application/json"
	}
	c.inner.SetHeader(name, value)
}

func ourStatus(status int) int {
	switch status {
	case http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		return http.StatusBadRequest
	}
	return status
}

// readBody takes the body, under the limit and a deadline.
func (c *exchange) readBody(limit int64) error {
	r, w := humago.Unwrap(c.inner)
	if len(r.TransferEncoding) == 0 && r.ContentLength == 0 {
		return nil
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return invalid("the body must be JSON: send Content-Type: application/json")
		}
	}
	control := http.NewResponseController(w)
	// What has no deadlines is not the network.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	_ = control.SetReadDeadline(time.Time{})
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Code: codeTooLarge,
			Message: "the body is too large for this route; split the request",
		}
	}
	if err != nil {
		return invalid("the body did not arrive whole")
	}
	if !utf8.Valid(body) || holdsNUL(body) {
		return invalid("the body holds U+0000 or is not UTF-8; no text of ours may")
	}
	c.body = bytes.NewReader(body)
	return nil
}

// holdsNUL finds the escape of U+0000 in JSON. Not every store can keep that
// character.
func holdsNUL(body []byte) bool {
	for at := 0; ; at++ {
		i := bytes.Index(body[at:], []byte(`\u0000`))
		if i < 0 {
			return false
		}
		at += i
		// After an odd number of backslashes this one is itself escaped.
		before := len(body[:at]) - len(bytes.TrimRight(body[:at], `\`))
		if before%2 == 0 {
			return true
		}
	}
}

// goodPath refuses what no name in a path can be.
func (c *exchange) goodPath() error {
	url := c.inner.URL()
	if path := url.Path; !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
		return invalid("the path holds U+0000 or is not UTF-8; no name does")
	}
	return nil
}

// refuse answers with an error.
func (c *exchange) refuse(e *Error) {
	for name, values := range e.GetHeaders() {
		c.SetHeader(name, values[0])
	}
	c.inner.SetHeader("Content-Type", "application/json")
	c.inner.SetStatus(e.Status)
	_ = json.NewEncoder(c.BodyWriter()).Encode(bodyOf(c.inner, e))
}

func bodyOf(ctx huma.Context, e *Error) ErrorBody {
	return ErrorBody{Code: e.Code, Message: e.Message, RequestID: requestOf(ctx.Context()).id}
}

// ourErrors gives the errors of handlers and of the framework our body. What a
// client sent is not repeated to it, because it may hold secrets.
func ourErrors(ctx huma.Context, _ string, v any) (any, error) {
	switch e := v.(type) {
	case *Error:
		return bodyOf(ctx, e), nil
	case *huma.ErrorModel:
		if ourStatus(e.Status) != http.StatusBadRequest {
			requestOf(ctx.Context()).log.Error("the framework failed", "status", e.Status, "detail", e.Detail)
			return bodyOf(ctx, internalError()), nil
		}
		return bodyOf(ctx, invalid("%s", problems(e))), nil
	}
	return v, nil
}

// maxProblems bounds a message that lists what does not fit.
const maxProblems = 8

// problems says what of a request does not fit its document, field by field.
func problems(e *huma.ErrorModel) string {
	var list []string
	for _, d := range e.Errors {
		where := strings.TrimPrefix(strings.TrimPrefix(d.Location, "body."), "query.")
		what := d.Message
		if len(where) > 300 {
			where = where[:300] + "..."
		}
		list = append(list, where+": "+what)
	}
	if len(list) == 0 {
		return e.Detail
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if more := len(list) - maxProblems; more > 0 {
		list = append(list[:maxProblems], "and more")
	}
	return strings.Join(list, "; ")
}
