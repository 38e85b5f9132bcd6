// Package conformance holds Felix to the published client protocol: golden
// vectors, raw frames over real QUIC, malformed input and floods, and the
// published Python client run unmodified against a node.
//
// It is all tests; docs/interop.md describes them and what they found out.
// Packages raw and recorder below are their tools.
package conformance
