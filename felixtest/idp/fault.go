package idp

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// A Fault is a way to fail. It concerns the discovery document and the keys.
type Fault uint8

// The faults.
const (
	None        Fault = iota
	Slow              // answers only when the fault ends, or the one who asks gives up
	Failing           // status 500
	HTML              // a page, with status 200
	Huge              // 50 MB
	Redirecting       // to itself under another path
	NoAlgorithm       // keys without alg; they are good nevertheless
	SharedKeyID       // before each key, another one of the same id
	OtherIssuer       // a discovery document of somebody else
	NoKeys            // an empty set
)

// Break makes the provider fail from now on, until [Provider.Repair] or another
// fault.
func (p *Provider) Break(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.repaired)
	p.repaired = make(chan struct{})
	p.fault = f
}

// Repair ends the fault.
func (p *Provider) Repair() { p.Break(None) }

// hugeBody is beyond what anybody should read.
const hugeBody = 50 << 20

// failed answers in place of the provider while it is broken.
func (p *Provider) failed(w http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	fault, repaired := p.fault, p.repaired
	p.mu.Unlock()
	switch fault {
	case Slow:
		select {
		case <-repaired:
		case <-p.closed:
		case <-r.Context().Done():
			return true
		}
		return false
	case Failing:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case HTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>Please sign in</body></html>"))
	case Huge:
		writeHuge(w)
	case Redirecting:
		http.Redirect(w, r, movedPath+r.URL.Path, http.StatusFound)
	default:
		return false
	}
	return true
}

// writeHuge stops when the reader has had enough.
func writeHuge(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	chunk := []byte(strings.Repeat(" ", 64<<10))
	for sent := 0; sent < hugeBody; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// published is the key set as the fault shows it.
func (p *Provider) published() (jose.JSONWebKeySet, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	if p.fault == NoKeys {
		return set, nil
	}
	for _, key := range p.keys {
		public := key.public()
		if p.fault == NoAlgorithm {
			public.Algorithm = ""
		}
		if p.fault == SharedKeyID {
			decoy, err := newKey(p.o.Algorithm)
			if err != nil {
				return set, err
			}
			decoy.kid = key.kid
			set.Keys = append(set.Keys, decoy.public())
		}
		set.Keys = append(set.Keys, public)
	}
	return set, nil
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the reader is gone
}
