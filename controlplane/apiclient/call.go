package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A call is one request of the API.
type call struct {
	method string
	path   string // with its parts escaped
	query  url.Values
	body   any // sent as JSON; nil sends none
	into   any // filled from the answer; nil takes none
	header http.Header
	open   bool // needs no token
	// idempotent says that repeating the call does no harm.
	idempotent bool
	extra      time.Duration // that the other side was asked to wait
	max        int64         // bytes of the answer; 0 is the client's bound
	also       int           // a status besides 2xx whose body is the answer, if it has the answer's form
}

// path joins parts, each of which is one segment whatever it holds.
func path(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(part))
	}
	return b.String()
}

// do makes the call: at the base URL that answered last, then at the others.
func (c *Client) do(ctx context.Context, k call) error {
	var body []byte
	if k.body != nil {
		var err error
		if body, err = json.Marshal(k.body); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	token := ""
	if !k.open && c.o.Token != nil {
		var err error
		if token, err = c.o.Token(ctx); err != nil {
			return fmt.Errorf("credential: %w", err)
		}
	}
	attempts := c.o.Retry.Attempts
	if attempts <= 0 {
		attempts = len(c.bases)
	}
	first := int(c.preferred.Load())
	for n := 0; ; n++ {
		at := (first + n) % len(c.bases)
		err := c.attempt(ctx, c.bases[at], &k, body, token)
		if err == nil {
			c.preferred.Store(int64(at))
			return nil
		}
		if ctx.Err() != nil || !repeatable(err, k.idempotent) || n+1 >= attempts {
			return outcome(ctx, err)
		}
		if (n+1)%len(c.bases) == 0 {
			if wait(ctx, c.o.Retry.pause((n+1)/len(c.bases), retryAfter(err))) != nil {
				return outcome(ctx, err)
			}
		}
	}
}

// outcome is what the caller gets of the last attempt.
func outcome(ctx context.Context, err error) error {
	var refused *Error
	var answer *AnswerError
	if errors.As(err, &refused) || errors.As(err, &answer) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return &UnreachableError{Err: err}
}

func (c *Client) attempt(ctx context.Context, base *url.URL, k *call, body []byte, token string) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout+k.extra)
	defer cancel()
	target := base.String() + k.path
	if len(k.query) > 0 {
		target += "?" + k.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, k.method, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range k.header {
		req.Header[name] = values
	}
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.o.UserAgent)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return refusal(res, k)
	}
	limit := c.o.MaxAnswer
	if k.max > 0 {
		limit = min(limit, k.max)
	}
	return read(res, k.into, limit)
}

// read decodes an answer of 2xx. An answer that breaks off is told from one of
// another form by its error alone; both are of no use.
func read(res *http.Response, into any, limit int64) error {
	body := &bounded{r: res.Body, left: limit}
	if into == nil {
		// What is left of a short answer is read, so that the connection stays.
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10))
		return nil
	}
	dec := json.NewDecoder(body)
	if err := dec.Decode(into); err != nil {
		return unreadable(res, body, limit, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return unreadable(res, body, limit, errors.New("more than one value"))
	}
	return nil
}

func unreadable(res *http.Response, body *bounded, limit int64, err error) error {
	switch {
	case body.left < 0:
		return &AnswerError{Status: res.StatusCode, What: fmt.Sprintf("more than %d bytes", limit)}
	case body.err != nil:
		return fmt.Errorf("answer broke off: %w", body.err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &AnswerError{Status: res.StatusCode, What: "the JSON is cut off"}
	}
	var missing *missingError
	if errors.As(err, &missing) {
		return &AnswerError{Status: res.StatusCode, What: missing.Error()}
	}
	return &AnswerError{Status: res.StatusCode, What: "not the JSON that was asked for"}
}

// bounded reads up to left bytes and fails on the next; left is then -1.
type bounded struct {
	r    io.Reader
	left int64
	err  error // of r, other than its end
}

var errTooLarge = errors.New("answer is too large")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// maxRefusal bounds the body of an error, and maxOutcomes one that lists what
// became of each part of a request.
const (
	maxRefusal  = 64 << 10
	maxOutcomes = 16 << 20
)

// refusal reads the error of an answer; a body that is none of ours gives an
// error with the status alone.
func refusal(res *http.Response, k *call) error {
	e := &Error{Status: res.StatusCode, RequestID: printable(res.Header.Get("X-Request-Id"))}
	if secs, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(secs) * time.Second
	}
	limit := int64(maxRefusal)
	if res.StatusCode == k.also {
		limit = maxOutcomes
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit))
	if err != nil {
		return e
	}
	var given struct {
		Code      string  `json:"code"`
		Message   string  `json:"message"`
		RequestID *string `json:"request_id"`
	}
	if json.Unmarshal(body, &given) != nil {
		return e
	}
	if res.StatusCode == k.also && json.Unmarshal(body, k.into) == nil {
		return nil
	}
	e.Code, e.Message = printable(given.Code), printable(given.Message)
	if given.RequestID != nil && *given.RequestID != "" {
		e.RequestID = printable(*given.RequestID)
	}
	return e
}

// The shapes of calls.

func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.do(ctx, call{method: http.MethodGet, path: path, query: query, into: into, idempotent: true})
}

func (c *Client) getOpen(ctx context.Context, path string, into any) error {
	return c.do(ctx, call{method: http.MethodGet, path: path, into: into, idempotent: true, open: true, max: 1 << 20})
}

// create makes something that would be refused, or made, twice.
func (c *Client) create(ctx context.Context, path string, body, into any) error {
	return c.do(ctx, call{method: http.MethodPost, path: path, body: body, into: into})
}

// post says something that may be said twice.
func (c *Client) post(ctx context.Context, path string, body, into any) error {
	return c.do(ctx, call{method: http.MethodPost, path: path, body: body, into: into, idempotent: true})
}

func (c *Client) patch(ctx context.Context, path string, body, into any) error {
	return c.do(ctx, call{method: http.MethodPatch, path: path, body: body, into: into, idempotent: true})
}

// remove is not repeated once it may have been carried out: the second answer
// would be a 404 that tells the caller something else.
func (c *Client) remove(ctx context.Context, path string, query url.Values, body, into any) error {
	return c.do(ctx, call{method: http.MethodDelete, path: path, query: query, body: body, into: into})
}
