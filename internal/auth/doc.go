// Package auth decides who a client is and what it may do.
//
// A client presents a token: a compact JWS signed with an Ed25519 key of its
// tenant. [Verifier] checks it against the keys of a [KeySource] and answers
// with a [Principal], whose [Grants] decide every later request (wire 12.3,
// 17). [Signer] mints such tokens, and the JWK and PEM functions move keys
// between files and memory.
//
// Nothing here logs, and no error holds a token or a part of one.
package auth
