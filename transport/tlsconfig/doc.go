// Package tlsconfig makes the TLS configurations of Felix: TLS 1.3 only, with
// certificates that are read again as their files change, client certificates
// where wanted, the ALPN rule of wire 2.1, and a certificate authority for
// development and tests.
package tlsconfig

// FelixALPN is the protocol a client may offer and a broker selects (wire 2.1).
const FelixALPN = "felix/1"
