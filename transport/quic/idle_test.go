package quic

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/transport"
)

func TestKeepAlivePeriod(t *testing.T) {
	for _, c := range []struct {
		idle, configured, want time.Duration
		adjusted               bool
	}{
		{6 * time.Second, 2 * time.Second, 2 * time.Second, false},
		{6 * time.Second, 0, 2 * time.Second, true},
		{6 * time.Second, 3*time.Second - 1, 3*time.Second - 1, false},
		{6 * time.Second, 3 * time.Second, 2 * time.Second, true},
		{6 * time.Second, time.Minute, 2 * time.Second, true},
		{30 * time.Second, 5 * time.Second, 5 * time.Second, false},
	} {
		got, adjusted := KeepAlivePeriod(c.idle, c.configured)
		if got != c.want || adjusted != c.adjusted {
			t.Errorf("KeepAlivePeriod(%v, %v) = %v, %v, want %v, %v", c.idle, c.configured, got, adjusted, c.want, c.adjusted)
		}
	}
}

func TestConfigDefaultsAndReports(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       ConnOptions
		period  time.Duration
		reports bool
	}{
		{"defaults", ConnOptions{}, 2 * time.Second, false},
		{"other idle timeout", ConnOptions{IdleTimeout: 30 * time.Second}, 10 * time.Second, false},
		{"too rare", ConnOptions{KeepAlive: 5 * time.Second}, 2 * time.Second, true},
		{"none", ConnOptions{KeepAlive: -1}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			cfg, err := c.o.config(BrokerWindows(), slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			if cfg.KeepAlivePeriod != c.period {
				t.Errorf("keep-alive %v, want %v", cfg.KeepAlivePeriod, c.period)
			}
			if reported := strings.Contains(log.String(), "keep-alive"); reported != c.reports {
				t.Errorf("reported %v, want %v: %s", reported, c.reports, &log)
			}
			if cfg.MaxIncomingStreams != 1024 || cfg.MaxIncomingUniStreams != 1024 || cfg.Allow0RTT || cfg.EnableDatagrams {
				t.Errorf("streams %d and %d, 0-RTT %v, datagrams %v", cfg.MaxIncomingStreams, cfg.MaxIncomingUniStreams, cfg.Allow0RTT, cfg.EnableDatagrams)
			}
			if cfg.MaxStreamReceiveWindow != 16*mib || cfg.MaxConnectionReceiveWindow != 16*mib ||
				cfg.InitialStreamReceiveWindow != 512*kib || cfg.InitialConnectionReceiveWindow != mib {
				t.Errorf("windows %+v", cfg)
			}
		})
	}
	for name, w := range map[string]Windows{
		"stream above connection": {Stream: 2, Conn: 1},
		"half given":              {Stream: 1},
	} {
		if _, err := (ConnOptions{}).config(w, nil); err == nil {
			t.Errorf("%s: windows %+v are accepted", name, w)
		}
	}
}

func TestIdleTimeout(t *testing.T) {
	silent := ConnOptions{IdleTimeout: 200 * time.Millisecond, KeepAlive: -1}
	e := newEnds(t, func(o *ListenOptions) { o.ConnOptions = silent }, func(o *DialOptions) { o.ConnOptions = silent })
	client, server := e.connect(t)
	for _, c := range []transport.Conn{client, server} {
		cause := context.Cause(waitDone(t, c.Context()))
		var closed *transport.CloseError
		if !errors.Is(cause, transport.ErrIdleTimeout) || !errors.As(cause, &closed) || closed.Application {
			t.Errorf("cause: %#v, want ErrIdleTimeout", cause)
		}
	}
	if _, err := client.OpenStream(testContext(t)); !errors.Is(err, transport.ErrIdleTimeout) {
		t.Errorf("open afterwards: %v, want ErrIdleTimeout", err)
	}
}

// Keep-alives of either side carry a silent connection past its idle timeout.
func TestKeepAlive(t *testing.T) {
	const idle, period = 2 * time.Second, 100 * time.Millisecond
	quiet := ConnOptions{IdleTimeout: idle, KeepAlive: -1}
	lively := ConnOptions{IdleTimeout: idle, KeepAlive: period}
	for name, side := range map[string]struct{ listener, dialer ConnOptions }{
		"by the server": {lively, quiet},
		"by the client": {quiet, lively},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnds(t, func(o *ListenOptions) { o.ConnOptions = side.listener }, func(o *DialOptions) { o.ConnOptions = side.dialer })
			client, server := e.connect(t)
			// More periods than fit the idle timeout.
			enough := uint64(6 * idle / 5 / period)
			eventually(t, "keep-alives arrive on both sides", func() bool {
				return client.Stats().PacketsReceived > enough && server.Stats().PacketsReceived > enough
			})
			openStream(t, client, server)
		})
	}
}
