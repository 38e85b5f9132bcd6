package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/felixlog/felix/controlplane/auth"
)

// What a body may hold, in bytes.
const (
	maxBody       = 2 << 20
	maxPublicBody = 64 << 10 // where nobody has said yet who he is
)

// A route is one operation of the API.
type route struct {
	id, method, path string
	summary, about   string
	tag              string
	status           int   // of success; 0 is 200
	refuses          []int // statuses besides those that follow from the other fields

	// who asks; nil is a route for everybody.
	who who
	// allow says whether the caller may, as far as the path tells; nil leaves it
	// to the handler. It may refuse with more than forbidden.
	allow func(c *auth.Caller, path params) error
	// limited routes are bounded per address.
	limited bool
	// hasBody is set for routes that take a body, and maxBody its bound in bytes;
	// 0 is 2 MiB, and 64 KiB where anybody may ask.
	hasBody bool
	maxBody int64
}

// who finds the tenant whose keys a caller's token is checked with: "" is the
// token's own.
type who func(path params) (tenant string)

func anyTenant(params) string       { return "" }
func pathTenant(path params) string { return path("tenant_id") }

// params are the segments of a path by name.
type params func(name string) string

type callerKey struct{}

// callerOf is who asks. Routes with a who have one.
func callerOf(ctx context.Context) *auth.Caller {
	c, _ := ctx.Value(callerKey{}).(*auth.Caller)
	return c
}

// add makes a route of a handler. The types of input and output make its
// document and the check of what comes in.
func add[I, O any](s *surface, r route, handle func(context.Context, *I) (*O, error)) {
	op := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, Description: r.about,
		Tags: []string{r.tag}, DefaultStatus: r.status, Responses: s.errorResponses(r),
		// The bound is enforced where the body is read.
		MaxBodyBytes: -1, BodyReadTimeout: -1,
		Middlewares: huma.Middlewares{s.steps(r)},
	}
	if r.who != nil {
		op.Security = []map[string][]string{{securityName: {}}}
	}
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, cancel := context.WithTimeout(ctx, handlerTimeout+maxWait)
		defer cancel()
		out, err := handle(ctx, in)
		if err == nil {
			return out, nil
		}
		return nil, s.refuse(ctx, r, err)
	})
}

// refuse turns an error into an answer, and logs it where it is no refusal.
func (a *API) refuse(ctx context.Context, r route, err error) *Error {
	req := requestOf(ctx)
	e := refusalOf(err)
	switch {
	case e == nil:
		req.log.Error("a request failed", "route", r.id, "error", err)
		return internalError()
	case e.Code == codeUnavailable:
		req.log.Warn("the store did not answer", "route", r.id, "error", err)
	case e.Status == http.StatusForbidden && e.Code == codeForbidden && !errors.As(err, new(*auth.Refusal)):
		a.o.Observer.Forbidden()
		req.log.Info("request refused", "route", r.id, "reason", "forbidden", "message", e.Message)
	}
	return e
}

// errorResponses documents every status a route refuses with.
func (s *surface) errorResponses(r route) map[string]*huma.Response {
	statuses := append([]int{http.StatusInternalServerError, http.StatusServiceUnavailable}, r.refuses...)
	if r.who != nil {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden)
	}
	if r.hasBody {
		statuses = append(statuses, http.StatusRequestEntityTooLarge)
	}
	if r.hasBody || strings.Contains(r.path, "{") {
		statuses = append(statuses, http.StatusBadRequest)
	}
	if r.limited {
		statuses = append(statuses, http.StatusTooManyRequests)
	}
	slices.Sort(statuses)
	out := map[string]*huma.Response{}
	for _, code := range slices.Compact(statuses) {
		out[strconv.Itoa(code)] = &huma.Response{
			Description: http.StatusText(code),
			Content:     map[string]*huma.MediaType{"application/json": {Schema: s.errorSchema}},
		}
	}
	return out
}

// steps are what comes before the handler, in the order of the package comment.
func (a *API) steps(r route) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		c := &exchange{inner: hc}
		ctx := hc.Context()
		fail := func(err error) { c.refuse(a.refuse(ctx, r, err)) }
		if r.limited {
			if wait := a.limits.take(hc.RemoteAddr()); wait > 0 {
				fail(&Error{
					Status: http.StatusTooManyRequests, Code: codeRateLimited, RetryAfter: wait,
					Message: "too many token requests from this address; try again later",
				})
				return
			}
		}
		if err := c.goodPath(); err != nil {
			fail(err)
			return
		}
		limit := int64(maxPublicBody)
		if r.who != nil {
			caller, err := a.o.Auth.Authenticate(ctx, hc.Header("Authorization"), r.who(hc.Param))
			if err != nil {
				fail(err)
				return
			}
			if r.allow != nil {
				if err := r.allow(caller, hc.Param); err != nil {
					fail(err)
					return
				}
			}
			ctx = context.WithValue(ctx, callerKey{}, caller)
			limit = maxBody
		}
		if r.maxBody > 0 {
			limit = r.maxBody
		}
		if r.hasBody {
			if err := c.readBody(limit); err != nil {
				fail(err)
				return
			}
		}
		next(huma.WithContext(c, ctx))
	}
}
