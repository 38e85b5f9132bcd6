package apiclient_test

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/felixlog/felix/controlplane/apiclient"
)

func TestAnAuthorityOfOnesOwn(t *testing.T) {
	s := httptest.NewTLSServer(answer(200, `{"items":[],"next_seq":9}`))
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c := newClient(t, apiclient.Options{URL: s.URL, CAPEM: ca})
	if got, err := c.TenantsSnapshot(t.Context()); err != nil || got.NextSeq != 9 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := newClient(t, apiclient.Options{URL: s.URL}).TenantsSnapshot(t.Context())
	var away *apiclient.UnreachableError
	if !errors.As(err, &away) {
		t.Errorf("a certificate of nobody known: %v", err)
	}
}
