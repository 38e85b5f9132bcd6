// Package oidc checks the tokens of a tenant's identity providers (control
// plane 15.1). It fetches their discovery documents and keys by itself, and
// treats both the token and the provider as hostile: a token cannot make it
// fetch more than once per cool-down and address, and a provider cannot make it
// reach into the network it runs in, wait long or hold much.
package oidc
