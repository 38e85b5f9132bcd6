package main

import (
	"bufio"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// asProgram makes the test binary the program itself.
const asProgram = "IDP_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=yes", "GORACE=atexit_sleep_ms=0")
	return cmd
}

var ready = regexp.MustCompile(`^identity provider ready: issuer (http://127\.0\.0\.1:[0-9]+), audience felix\n$`)

// It says where it is, gives tokens to whoever shows a secret, and ends when it
// is told to.
func TestProvider(t *testing.T) {
	cmd := program("--addr", "127.0.0.1:0", "alice:s3cret", "bob:other:secret")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	match := ready.FindStringSubmatch(line)
	if err != nil || match == nil {
		t.Fatalf("said %q, %v", line, err)
	}
	for id, tc := range map[string]struct {
		secret string
		status int
	}{"alice": {"s3cret", 200}, "bob": {"other:secret", 200}, "carol": {"s3cret", 401}} {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {tc.secret}}
		response, err := http.PostForm(match[1]+"/token", form)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tc.status {
			t.Errorf("%s: %s", id, response.Status)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestProviderRefuses(t *testing.T) {
	for want, args := range map[int][]string{1: {"--addr", "0.0.0.0:0"}, 2: {"alice"}} {
		cmd := program(args...)
		said, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != want || !strings.HasPrefix(string(said), "idp: ") {
			t.Errorf("%v: exit %d, said %q", args, cmd.ProcessState.ExitCode(), said)
		}
	}
	said, err := program("alice:good", ":s3cret").CombinedOutput()
	if err == nil || strings.Contains(string(said), "s3cret") {
		t.Errorf("%v: said %q", err, said)
	}
}
