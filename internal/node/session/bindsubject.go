package session

import (
	"crypto/x509"
	"fmt"
	"slices"

	"github.com/felixlog/felix/internal/auth"
)

// bindSubject checks that a token belongs to whoever holds the client
// certificate: its subject must be the certificate's common name or one of
// its DNS, URI or e-mail names (wire 2.1).
func bindSubject(p *auth.Principal, chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return fmt.Errorf("token of %q needs a client certificate", p.Subject)
	}
	leaf := chain[0]
	if p.Subject == leaf.Subject.CommonName || slices.Contains(leaf.DNSNames, p.Subject) || slices.Contains(leaf.EmailAddresses, p.Subject) {
		return nil
	}
	for _, u := range leaf.URIs {
		if u.String() == p.Subject {
			return nil
		}
	}
	return fmt.Errorf("token of %q does not match the client certificate of %q", p.Subject, leaf.Subject.CommonName)
}
