package apiclient

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// transport is sized for one control plane: a broker has a handful of polls
// under way.
func transport(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: DefaultDialTimeout, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    16,
		MaxConnsPerHost:        64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}
