package cli

import (
	"net/http"
	"testing"
	"time"
)

// waitFor polls until something is so, and fails when it does not become so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// httpStatus gets a page and returns its status.
func httpStatus(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
