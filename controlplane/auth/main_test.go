package auth_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests(m)) }
