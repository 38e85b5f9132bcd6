package pgtest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// errNotInstalled says that there is no Postgres here, and that it could not be
// installed.
var errNotInstalled = errors.New("postgres and initdb are neither in PATH nor in /usr/lib/postgresql/*/bin; install Postgres 13 or later (Debian: apt-get install postgresql)")

// installTime bounds the attempt to install it.
const installTime = 3 * time.Minute

// binaries finds postgres and initdb, installing them where that is possible.
func binaries(ctx context.Context) (postgres, initdb string, err error) {
	if postgres, initdb, ok := lookup(); ok {
		return postgres, initdb, nil
	}
	install(ctx)
	if postgres, initdb, ok := lookup(); ok {
		return postgres, initdb, nil
	}
	return "", "", errNotInstalled
}

// lookup searches PATH, then the usual directories, the newest version first.
func lookup() (postgres, initdb string, ok bool) {
	postgres, err1 := exec.LookPath("postgres")
	initdb, err2 := exec.LookPath("initdb")
	if err1 == nil && err2 == nil {
		return postgres, initdb, true
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails on a bad pattern only
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	for _, dir := range found {
		postgres, initdb = filepath.Join(dir, "postgres"), filepath.Join(dir, "initdb")
		if executable(postgres) && executable(initdb) {
			return postgres, initdb, true
		}
	}
	return "", "", false
}

// version of a directory like /usr/lib/postgresql/15/bin; 0 for another.
func version(bin string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return n
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// install asks the package manager of Debian and its relatives, which only root
// may. Whether it helped is seen by looking again.
func install(ctx context.Context) {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, apt, "install", "-y", "--no-install-recommends", "postgresql")
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	_ = cmd.Run()
}
