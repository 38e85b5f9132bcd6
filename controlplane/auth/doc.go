// Package auth is who may do what in the control plane: it takes the tokens of
// a tenant's identity providers for Felix tokens, keeps sessions alive with
// refresh tokens that are spent when used, signs with the keys of tenants and
// turns them over, checks the tokens that the API is called with, and guards
// the administration of rights (control plane 15 to 17).
//
// What it refuses is a [*Refusal], with the status and code of the API. Any
// other error is the store's. Neither they nor the log hold a token, a secret
// or a part of one.
//
// A token comes into being in exchange.go and refresh.go, and is checked in
// caller.go. The administration of rights is policy.go, grouping.go and
// issuer.go; keys.go turns keys over, bootstrap.go is day 0.
package auth
