package apiclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Defaults of [Options].
const (
	DefaultTimeout     = 10 * time.Second
	DefaultMaxAnswer   = 256 << 20 // bytes
	DefaultDialTimeout = 3 * time.Second
)

// Options are what a client is made with.
type Options struct {
	// URL is the base URL of the control plane, or several separated by
	// commas, which are tried in turn: https://host:port, perhaps with a path.
	URL string
	// Token gives the bearer token of a call that needs one; nil sends none.
	Token func(ctx context.Context) (string, error)
	// HTTP is the client to use; nil makes one. Its redirects are not followed.
	HTTP *http.Client
	// CAPEM is trusted besides the system's authorities. It needs https URLs,
	// and HTTP to be nil.
	CAPEM []byte
	// UserAgent names the caller; "felix" where it is empty.
	UserAgent string
	// Timeout bounds one attempt, a long-poll's wait not counted; 0 means 10 s.
	Timeout time.Duration
	// MaxAnswer bounds an answer in bytes; 0 means 256 MiB.
	MaxAnswer int64
	// Retry says how calls are repeated. The zero value asks each URL once.
	Retry Retry
}

// A Client calls one control plane. It is safe for concurrent use.
type Client struct {
	bases     []*url.URL
	preferred atomic.Int64 // the base that answered last
	http      *http.Client
	o         Options
}

// New makes a client; it connects to nothing yet.
func New(o Options) (*Client, error) {
	bases, err := parseURLs(o.URL)
	if err != nil {
		return nil, err
	}
	if o.UserAgent == "" {
		o.UserAgent = "felix"
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	o.Retry = o.Retry.withDefaults()
	c := &Client{bases: bases, o: o}
	if c.http, err = httpClient(&o, bases); err != nil {
		return nil, err
	}
	return c, nil
}

// WithToken is a client that shares the connections of c and sends the tokens
// that token gives.
func (c *Client) WithToken(token func(ctx context.Context) (string, error)) *Client {
	o := c.o
	o.Token = token
	return &Client{bases: c.bases, http: c.http, o: o}
}

// URLs are the base URLs, as parsed.
func (c *Client) URLs() []string {
	all := make([]string, len(c.bases))
	for i, base := range c.bases {
		all[i] = base.String()
	}
	return all
}

// CloseIdle closes connections that nobody uses.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// maxURLs bounds the list: more is a mistake.
const maxURLs = 32

func parseURLs(list string) ([]*url.URL, error) {
	var bases []*url.URL
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		base, err := parseURL(text)
		if err != nil {
			return nil, err
		}
		bases = append(bases, base)
	}
	switch {
	case len(bases) == 0:
		return nil, errors.New("control plane URL is empty: give one as in https://host:8443")
	case len(bases) > maxURLs:
		return nil, fmt.Errorf("%d control plane URLs, at most %d are allowed", len(bases), maxURLs)
	}
	return bases, nil
}

// parseURL does not repeat what it refuses: a URL may hold a password.
func parseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("control plane URL does not parse: give one as in https://host:8443")
	case base.User != nil:
		return nil, errors.New("control plane URL holds a user name or password: give the token apart")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, fmt.Errorf("control plane URL %q: give one as in https://host:8443", text)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("control plane URL %q has a query or fragment: give the base alone", base.Redacted())
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = ""
	return base, nil
}

func httpClient(o *Options, bases []*url.URL) (*http.Client, error) {
	if o.HTTP != nil {
		if o.CAPEM != nil {
			return nil, errors.New("a certificate authority cannot be added to a given HTTP client")
		}
		own := *o.HTTP
		own.CheckRedirect = noRedirect
		return &own, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.CAPEM) > 0 {
		for _, base := range bases {
			if base.Scheme != "https" {
				return nil, fmt.Errorf("a certificate authority is given, but %s is not https", base)
			}
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(o.CAPEM) {
			return nil, errors.New("the certificate authority file holds no PEM certificate")
		}
		config.RootCAs = pool
	}
	return &http.Client{Transport: transport(config), CheckRedirect: noRedirect}, nil
}

// noRedirect keeps a token from being sent where its owner did not say.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
