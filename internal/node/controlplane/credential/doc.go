// Package credential gives the token a broker shows to the control plane
// (control plane 18): from a setting or a file, and kept alive with a refresh
// token. No token is part of an error or a log line.
package credential
