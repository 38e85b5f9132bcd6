package idp

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The bounds of devices that wait (RFC 8628).
const (
	maxDevices     = 1000
	deviceLifetime = 10 * time.Minute
	deviceInterval = 1 // seconds between two questions
)

// A device waits for somebody to approve it.
type device struct {
	userCode string
	expires  time.Time
	claims   Claims // once it is approved
	denied   bool
}

func (p *Provider) serveDevice(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil || r.PostForm.Get("client_id") == "" {
		oauthError(w, http.StatusBadRequest, "invalid_request")
		return
	}
	code := randomHex(16)
	user := strings.ToUpper(randomHex(4))
	now := p.o.Now()
	p.mu.Lock()
	for old, d := range p.devices {
		if now.After(d.expires) {
			delete(p.devices, old)
		}
	}
	full := len(p.devices) >= maxDevices
	if !full {
		p.devices[code] = &device{userCode: user, expires: now.Add(deviceLifetime), claims: p.o.AutoApprove}
	}
	p.mu.Unlock()
	if full {
		oauthError(w, http.StatusTooManyRequests, "slow_down")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": user, "expires_in": int(deviceLifetime.Seconds()), "interval": deviceInterval,
		"verification_uri":          p.issuer + approvePath,
		"verification_uri_complete": p.issuer + approvePath + "?user_code=" + user,
	})
}

// grantToDevice answers a device that asks whether it was approved. A code is
// good for one token.
func (p *Provider) grantToDevice(w http.ResponseWriter, r *http.Request) {
	code := r.PostForm.Get("device_code")
	p.mu.Lock()
	d, found := p.devices[code], false
	var asked device
	if d != nil {
		asked, found = *d, true
	}
	expired := found && p.o.Now().After(asked.expires)
	pending := found && !expired && asked.claims == nil && !asked.denied
	if found && !pending {
		delete(p.devices, code)
	}
	p.mu.Unlock()
	switch {
	case !found:
		oauthError(w, http.StatusBadRequest, "invalid_grant")
	case expired:
		oauthError(w, http.StatusBadRequest, "expired_token")
	case asked.denied:
		oauthError(w, http.StatusBadRequest, "access_denied")
	case pending:
		oauthError(w, http.StatusBadRequest, "authorization_pending")
	default:
		p.answerToken(w, asked.claims)
	}
}

// Approve lets the device with that user code have a token of these claims; nil
// denies it.
func (p *Provider) Approve(userCode string, claims Claims) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.devices {
		if d.userCode == userCode {
			d.claims, d.denied = claims, claims == nil
			return nil
		}
	}
	return fmt.Errorf("no device waits with the user code %q", userCode)
}

// serveApprove is Approve for people with a browser:
// /approve?user_code=CODE&sub=NAME&group=NAME.
func (p *Provider) serveApprove(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("sub") == "" {
		http.Error(w, "say who you are: add &sub=NAME, and &group=NAME for groups", http.StatusBadRequest)
		return
	}
	claims := Claims{"sub": query.Get("sub")}
	if groups := query["group"]; len(groups) > 0 {
		claims["groups"] = groups
	}
	if err := p.Approve(query.Get("user_code"), claims); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte("approved\n"))
}
