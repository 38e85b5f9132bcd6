package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// clientPackage is what the tests install: the newest release pip finds.
const clientPackage = "felix-client"

// A pythonEnv is a virtual environment with the published client in it.
type pythonEnv struct {
	python  string
	version string
}

// publishedClient finds or makes the environment, once for all tests.
var publishedClient = sync.OnceValues(newPythonEnv)

// TestMain sees to the published client first. Every test that needs it is
// called TestClient...; without it these can say nothing. That is a failure
// where CI is "true"; elsewhere the rest of the tests run, and what is missing
// is said.
func TestMain(m *testing.M) {
	runFelix()
	flag.Parse()
	waitTogether()
	if _, err := publishedClient(); err != nil {
		fmt.Fprintf(os.Stderr, "conformance: the published Python client cannot be run here: %v\n"+
			"needed: python3 (3.9 or later) with venv, and pip able to install %s;\n"+
			"or FELIX_VENV naming a virtual environment that has it\n", err, clientPackage)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, "conformance: NOT RUN for want of it: every test named TestClient...")
		if err := flag.Set("test.skip", "^TestClient"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// waitTogether lets more tests run at once than there are processors: what
// most of them do is wait for timeouts of the published client.
func waitTogether() {
	const together = 16
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen && runtime.GOMAXPROCS(0) < together {
		if err := flag.Set("test.parallel", fmt.Sprint(together)); err != nil {
			panic("the testing package has no -parallel: " + err.Error())
		}
	}
}

// pythonClient is the published client.
func pythonClient(t *testing.T) pythonEnv {
	t.Helper()
	env, err := publishedClient()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// venvDir is where the environment lives: outside the source tree, so that no
// tool walks it.
func venvDir() (string, error) {
	if dir := os.Getenv("FELIX_VENV"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory (set FELIX_VENV): %w", err)
	}
	return filepath.Join(cache, "felix-conformance", "venv"), nil
}

func newPythonEnv() (pythonEnv, error) {
	dir, err := venvDir()
	if err != nil {
		return pythonEnv{}, err
	}
	bin := "bin/python"
	if runtime.GOOS == "windows" {
		bin = `Scripts\python.exe`
	}
	env := pythonEnv{python: filepath.Join(dir, bin)}
	if _, err := os.Stat(env.python); errors.Is(err, os.ErrNotExist) {
		if out, err := exec.Command("python3", "-m", "venv", dir).CombinedOutput(); err != nil {
			return pythonEnv{}, fmt.Errorf("python3 -m venv %s: %w\n%s", dir, err, out)
		}
	}
	installed := env.installed() == nil
	// Once a day is often enough to look for a newer release; a machine
	// without a way to one keeps testing the release it has.
	stamp := filepath.Join(dir, "felix-checked")
	if st, err := os.Stat(stamp); installed && err == nil && time.Since(st.ModTime()) < 24*time.Hour {
		return env, env.readVersion()
	}
	out, err := exec.Command(env.python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet",
		"--upgrade", clientPackage).CombinedOutput()
	if err != nil && !installed {
		return pythonEnv{}, fmt.Errorf("pip install %s: %w\n%s", clientPackage, err, out)
	}
	if err == nil {
		if err := os.WriteFile(stamp, nil, 0o644); err != nil {
			return pythonEnv{}, fmt.Errorf("note the installation: %w", err)
		}
	}
	return env, env.readVersion()
}

// command runs a script of conformance/python; it leaves no compiled files in
// the source tree.
func (e pythonEnv) command(file string) *exec.Cmd {
	return exec.Command(e.python, "-B", "-u", filepath.Join("python", file))
}

func (e *pythonEnv) installed() error {
	return exec.Command(e.python, "-c", "import felix").Run()
}

func (e *pythonEnv) readVersion() error {
	out, err := exec.Command(e.python, "-c", "import felix; print(felix.__version__)").Output()
	if err != nil {
		return fmt.Errorf("import felix: %w", err)
	}
	e.version = strings.TrimSpace(string(out))
	return nil
}
