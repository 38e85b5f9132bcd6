// Package api is the control plane's HTTP interface (control plane 2, 4 to 6):
// every route, with its rules of who may, its checks of what comes in and its
// document.
//
// # The life of a request
//
// The outer handler (request.go) counts the request, names it, catches panics
// and answers for what no route takes. A route (route.go) then runs its steps
// in one order: the rate limit of token routes; who asks; whether he may, as
// far as the path tells; the body, bounded and read under a deadline; its shape,
// checked against the document; the handler. A caller who may not learns
// nothing else: a refusal never depends on what exists.
//
// Every answer that is not a success is an [ErrorBody]. What the store says
// beyond its own errors is logged, and answered without details.
//
// # Feeds
//
// Readers of a change feed may wait (watch.go). Waiters of a feed share one
// poller, which runs while anybody waits; a write on this instance wakes it at
// once, one on another instance is seen within 50 ms.
package api
