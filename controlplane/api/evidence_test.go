package api_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// evidence is what all servers of the tests logged, and the errors they
// answered, together with every secret the tests used: no secret may be in it.
type evidence struct {
	mu      sync.Mutex
	text    bytes.Buffer
	secrets []string
}

func (e *evidence) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.Write(b)
}

func (e *evidence) secret(s string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.secrets = append(e.secrets, s)
	return s
}

// leaks are the secrets that can be read, by their number.
func (e *evidence) leaks() (found []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := e.text.String()
	for i, s := range e.secrets {
		// A token's signature alone would be enough to complete one.
		parts := strings.Split(s, ".")
		if strings.Contains(text, s) || strings.Contains(text, parts[len(parts)-1]) {
			found = append(found, i)
		}
	}
	return found
}

var seen evidence

// checked runs the tests and then looks for secrets in what was said.
type checked struct{ m *testing.M }

func (c checked) Run() int {
	code := c.m.Run()
	if found := seen.leaks(); len(found) > 0 {
		fmt.Fprintf(os.Stderr, "%d of %d secrets are in the log or in an error\n", len(found), len(seen.secrets))
		return 1
	}
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests(checked{m})) }
