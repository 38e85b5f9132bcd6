package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxFetches is how many fetches run at once; more wait their turn, within
// their time.
const maxFetches = 16

// A fetcher gets documents of providers.
type fetcher struct {
	timeout  time.Duration
	secure   *http.Client
	insecure *http.Client // reaches loopback addresses only
	slots    chan struct{}
}

func newFetcher(o *Options) *fetcher {
	return &fetcher{
		timeout:  o.Timeout,
		secure:   newClient(o, false),
		insecure: newClient(o, true),
		slots:    make(chan struct{}, maxFetches),
	}
}

// newClient takes no proxy from the environment and follows no redirect: both
// would go where nobody looked. Fetches are an hour apart, so that connections
// are not kept.
func newClient(o *Options, insecure bool) *http.Client {
	dialer := &net.Dialer{Timeout: o.Timeout, Control: o.dialControl(insecure)}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
			TLSHandshakeTimeout:    o.Timeout,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetch gets the document at an address that checkURL found good. Errors say
// what a provider did wrong and hold nothing that it sent.
func (f *fetcher) fetch(address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), f.timeout)
	defer cancel()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil, errors.New("too many providers are being asked at once")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address is not a URL")
	}
	request.Header.Set("Accept", "application/json")
	client := f.secure
	if strings.HasPrefix(address, "http:") {
		client = f.insecure
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fetchError(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answered with status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBody+1))
	if err != nil {
		return nil, fetchError(err)
	}
	if len(body) > MaxBody {
		return nil, fmt.Errorf("the provider answered with more than %d bytes", MaxBody)
	}
	return body, nil
}

// fetchError drops the address, which may say more than a log should.
func fetchError(err error) error {
	var timeout interface{ Timeout() bool }
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errAddress):
		return errAddress
	case errors.As(err, &certificate):
		return errors.New("the certificate of the provider is not trusted")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("the provider did not answer in time")
	}
	return errors.New("the provider could not be reached")
}
