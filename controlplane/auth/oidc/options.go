package oidc

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The bounds of a [Verifier] (control plane 15.1).
const (
	CacheTTL       = time.Hour        // of documents and key sets
	CoolDown       = 30 * time.Second // between two fetches of one URL
	DefaultTimeout = 10 * time.Second // of one fetch
	MaxBody        = 1 << 20          // bytes of one answer
	Leeway         = 60 * time.Second // of clocks
)

// Options are how upstream tokens are checked. The zero value is the safest.
type Options struct {
	// Algorithms that are accepted; nil is ES256 alone. RS256, RS384, RS512,
	// PS256, PS384 and PS512 may be added.
	Algorithms []string
	// AllowInsecureHTTP lets loopback addresses be fetched from without TLS.
	AllowInsecureHTTP bool
	// AllowPrivateIDP lets providers be on private addresses.
	AllowPrivateIDP bool
	RootCAs         *x509.CertPool // nil is the system's
	Now             func() time.Time
	Timeout         time.Duration // 0 is DefaultTimeout
}

// algorithms are all that may be allowed.
var algorithms = []string{"ES256", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}

func (o *Options) validate() error {
	if o.Now == nil {
		return errors.New("oidc needs a clock")
	}
	if o.Algorithms == nil {
		o.Algorithms = []string{"ES256"}
	}
	if len(o.Algorithms) == 0 {
		return errors.New("no algorithm is allowed for upstream tokens; allow ES256 at least")
	}
	for _, alg := range o.Algorithms {
		if !slices.Contains(algorithms, alg) {
			return fmt.Errorf("algorithm %q cannot be allowed for upstream tokens, only %v", alg, algorithms)
		}
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	return nil
}
