package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"
)

// handlerTimeout bounds what a handler may wait for the store, beyond the wait
// it was asked for.
const handlerTimeout = 30 * time.Second

// A request is what is known of one from outside its route.
type request struct {
	id  string
	log *slog.Logger // names the request and its trace
}

type requestKey struct{}

// requestOf is the request a context belongs to.
func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	if r == nil {
		return &request{log: slog.New(slog.DiscardHandler)}
	}
	return r
}

// enclose puts the steps around a mux that all requests share. The gauge is the
// outermost, so that it counts a request for its whole life.
func (a *API) enclose(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.o.Observer.RequestBegan()
		defer a.o.Observer.RequestEnded()
		id := a.requestID(r)
		log := a.o.Logger.With("request_id", id)
		if trace := traceID(r.Header.Get("Traceparent")); trace != "" {
			log = log.With("trace_id", trace)
		}
		w.Header().Set("X-Request-Id", id)
		// Nothing here is a page to keep or to guess the type of.
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		rec := &recorder{ResponseWriter: w}
		began := a.o.Clock()
		defer func() {
			if p := recover(); p != nil {
				a.panicked(rec, id, log, p)
			}
			log.Debug("request served", "method", r.Method, "path", r.URL.Path, "status", rec.status,
				"bytes", rec.bytes, "duration_ms", a.o.Clock().Sub(began).Milliseconds())
		}()
		ctx := context.WithValue(r.Context(), requestKey{}, &request{id: id, log: log})
		serveMux(mux, rec, r.WithContext(ctx), id)
	})
}

// panicked answers for a handler that panicked. A panic that wants the
// connection ended ends it; so does one after the answer began, because half an
// answer must not look whole.
func (a *API) panicked(rec *recorder, id string, log *slog.Logger, p any) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	if rec.failed != nil { // the framework panics about clients that left
		log.Debug("an answer could not be written", "error", rec.failed)
		panic(http.ErrAbortHandler)
	}
	log.Error("a handler panicked", "panic", p, "stack", string(debug.Stack()))
	if rec.status != 0 {
		panic(http.ErrAbortHandler)
	}
	writeError(rec, id, internalError())
}

func internalError() *Error {
	return &Error{Status: http.StatusInternalServerError, Code: codeInternal, Message: "internal error; the log of the service has the details under the request id"}
}

// serveMux serves what a route takes, and answers in our form for what none
// does.
func serveMux(mux *http.ServeMux, w http.ResponseWriter, r *http.Request, id string) {
	handler, pattern := mux.Handler(r)
	// The mux would send a client to a cleaner path. No name holds what is
	// cleaned away, so there is no such route.
	clean := path.Clean(r.URL.EscapedPath()) == r.URL.EscapedPath()
	if clean && pattern != "" {
		mux.ServeHTTP(w, r)
		return
	}
	refused := &Error{Status: http.StatusNotFound, Code: codeNotFound, Message: "no such route; see /docs"}
	if clean {
		probe := &recorder{ResponseWriter: discard{http.Header{}}}
		handler.ServeHTTP(probe, r)
		if probe.status == http.StatusMethodNotAllowed {
			allow := probe.Header().Get("Allow")
			w.Header().Set("Allow", allow)
			refused = &Error{Status: http.StatusMethodNotAllowed, Code: codeMethod, Message: "this route takes " + allow}
		}
	}
	writeError(w, id, refused)
}

func writeError(w http.ResponseWriter, id string, e *Error) {
	h := w.Header()
	for name, values := range e.GetHeaders() {
		h[name] = values
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	// A client that left is no concern of ours.
	_ = json.NewEncoder(w).Encode(ErrorBody{Code: e.Code, Message: e.Message, RequestID: id})
}

// requestID is what the client calls the request if that is sane, else a new id.
func (a *API) requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); saneID(id) {
		return id
	}
	var b [16]byte
	if _, err := io.ReadFull(a.random, b[:]); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(b[:])
}

func saneID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', strings.IndexByte("-_.", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// traceID is the trace of a W3C traceparent header, "" if it is not one.
func traceID(header string) string {
	parts := strings.Split(header, "-")
	if len(header) > 256 || len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return ""
	}
	if _, err := hex.DecodeString(parts[1]); err != nil || parts[1] == strings.Repeat("0", 32) {
		return ""
	}
	return strings.ToLower(parts[1])
}
