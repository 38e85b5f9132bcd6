// Package apiclient is the typed client of the control plane's HTTP API: for
// brokers, the command line and tests (control plane 2, 4).
//
// What the control plane refuses is an [*Error]; what it could not be asked is
// an [*UnreachableError]; an answer that makes no sense is an [*AnswerError].
// No token is part of any error. Answers are bounded in size, redirects are not
// followed, and every call ends with its context.
package apiclient
