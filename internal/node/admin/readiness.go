// Package admin is the HTTP listener for operators: health and metrics.
package admin

// Readiness is whether a node should be sent work.
type Readiness struct{}
