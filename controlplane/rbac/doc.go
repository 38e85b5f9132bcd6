// Package rbac decides what a subject may do (control plane 16). A policy lets
// a subject do an action to an object; a grouping gives a user the policies of
// a role. Objects are parsed, never compared as text, and one [Object.Contains]
// answers every question about scope.
//
// The security boundary is in that one function: no scope inside a tenant
// contains the cluster or a node, and no cluster scope contains anything of a
// tenant.
//
// The package is pure. It knows no store and no clock.
package rbac
