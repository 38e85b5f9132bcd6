package recorder

import "crypto/tls"

func TestConfig(p *PKI) *tls.Config { return p.config(func(*tls.ClientHelloInfo) {}) }
