package planner

import (
	"testing"

	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests(m)) }
