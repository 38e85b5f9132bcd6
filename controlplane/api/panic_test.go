package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// failing is a client that left.
type failing struct{ *httptest.ResponseRecorder }

func (failing) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A handler that panics is answered 500 and logged under the id of the request;
// one whose client left is no fault of anybody.
func TestPanics(t *testing.T) {
	var logged bytes.Buffer
	a := newAPI(t)
	a.o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	add(a.main, route{id: "panics", method: "GET", path: "/panics", tag: "test", summary: "x"}, func(context.Context, *struct{}) (*noBody, error) {
		panic("of this test")
	})
	add(a.main, route{id: "big", method: "GET", path: "/big", tag: "test", summary: "x"}, func(context.Context, *struct{}) (*statusOut, error) {
		return &statusOut{SystemStatus{"ok"}}, nil
	})
	add(a.main, route{id: "fails", method: "GET", path: "/fails", tag: "test", summary: "x"}, func(context.Context, *struct{}) (*noBody, error) {
		return nil, errors.New("a detail of the store")
	})
	for _, path := range []string{"/panics", "/fails"} {
		logged.Reset()
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		var e ErrorBody
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != 500 || e.Code != "internal" {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "detail of") || strings.Contains(w.Body.String(), "this test") {
			t.Errorf("%s: the answer has details: %s", path, w.Body)
		}
		if !strings.Contains(logged.String(), e.RequestID) || !strings.Contains(logged.String(), "level=ERROR") {
			t.Errorf("%s: logged %s", path, logged.String())
		}
	}
	logged.Reset()
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the connection is not ended: %v", p)
			}
		}()
		a.Handler().ServeHTTP(failing{httptest.NewRecorder()}, httptest.NewRequest("GET", "/big", nil))
	}()
	if logged.Len() != 0 {
		t.Errorf("a client that left is logged: %s", logged.String())
	}
}
