package idp

import (
	"crypto/subtle"
	"net/http"
)

// The paths of a provider.
const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/jwks.json"
	devicePath    = "/device_authorization"
	tokenPath     = "/token"
	approvePath   = "/approve"
	movedPath     = "/moved" // where a redirect leads: everything is there too
)

// maxForm bounds the body of a request in bytes.
const maxForm = 64 << 10

// The grant types (RFC 6749 4.4, RFC 8628 3.4).
const (
	grantClient = "client_credentials"
	grantDevice = "urn:ietf:params:oauth:grant-type:device_code"
)

func (p *Provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+discoveryPath, p.serveDiscovery)
	mux.HandleFunc("GET "+keysPath, p.serveKeys)
	mux.HandleFunc("POST "+devicePath, p.serveDevice)
	mux.HandleFunc("POST "+tokenPath, p.serveToken)
	mux.HandleFunc("GET "+approvePath, p.serveApprove)
	mux.HandleFunc("GET "+movedPath+discoveryPath, p.answerDiscovery)
	mux.HandleFunc("GET "+movedPath+keysPath, p.answerKeys)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" { // what it does not serve it does not count
			p.mu.Lock()
			p.requests[r.URL.Path]++
			p.mu.Unlock()
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		mux.ServeHTTP(w, r)
	})
}

func (p *Provider) serveDiscovery(w http.ResponseWriter, r *http.Request) {
	if !p.failed(w, r) {
		p.answerDiscovery(w, r)
	}
}

func (p *Provider) answerDiscovery(w http.ResponseWriter, _ *http.Request) {
	issuer := p.issuer
	p.mu.Lock()
	if p.fault == OtherIssuer {
		issuer = "https://somebody.else.example"
	}
	algorithm := p.keys[len(p.keys)-1].algorithm
	p.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                issuer,
		"jwks_uri":                              p.JWKSURL(),
		"token_endpoint":                        p.issuer + tokenPath,
		"device_authorization_endpoint":         p.issuer + devicePath,
		"grant_types_supported":                 []string{grantClient, grantDevice},
		"response_types_supported":              []string{"id_token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []any{algorithm},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
	})
}

func (p *Provider) serveKeys(w http.ResponseWriter, r *http.Request) {
	if !p.failed(w, r) {
		p.answerKeys(w, r)
	}
}

func (p *Provider) answerKeys(w http.ResponseWriter, _ *http.Request) {
	set, err := p.published()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, set)
}

func (p *Provider) serveToken(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil {
		oauthError(w, http.StatusBadRequest, "invalid_request")
		return
	}
	switch r.PostForm.Get("grant_type") {
	case grantClient:
		p.grantToClient(w, r)
	case grantDevice:
		p.grantToDevice(w, r)
	default:
		oauthError(w, http.StatusBadRequest, "unsupported_grant_type")
	}
}

// grantToClient gives a client a token for itself: its id is the subject.
func (p *Provider) grantToClient(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	known, found := p.o.Clients[id]
	if !found || subtle.ConstantTimeCompare([]byte(known), []byte(secret)) != 1 {
		oauthError(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	p.answerToken(w, Claims{"sub": id})
}

func (p *Provider) answerToken(w http.ResponseWriter, claims Claims) {
	token := p.Token(claims)
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "id_token": token, "token_type": "Bearer", "expires_in": int(p.o.Lifetime.Seconds()),
	})
}

func oauthError(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, map[string]string{"error": code})
}
