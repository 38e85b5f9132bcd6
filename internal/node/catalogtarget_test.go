package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/telemetry"
)

// applyCatalog applies a catalog to a broker of its own.
func applyCatalog(t *testing.T, text string) (*broker.Broker, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "catalog.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	core := broker.New(broker.Config{}, systemClock{})
	t.Cleanup(core.Close)
	target := &catalogTarget{core: core, keys: auth.NewStaticKeys(), tenants: telemetry.New(telemetry.Options{}).Tenants}
	return core, followCatalog(t.Context(), file, target, slog.New(slog.DiscardHandler))
}

const catalogHead = "tenants:\n  t1:\n    namespaces:\n      default:\n        streams:\n          orders:\n"

func TestCatalogMakesStreamsAndCaches(t *testing.T) {
	core, err := applyCatalog(t, catalogHead+"            shards: 4\n            routing: jump_hash\n            queue_policy: block\n        caches:\n          users:\n            shards: 2\n")
	if err != nil {
		t.Fatal(err)
	}
	s, err := core.Stream("t1", "default", "orders")
	if err != nil || s.Options().Shards != 4 || s.Options().Routing != 1 || s.Options().QueuePolicy != stream.Block {
		t.Errorf("stream %+v, error %v", s, err)
	}
	if _, err := core.Cache("t1", "default", "users"); err != nil {
		t.Error(err)
	}
}

// What this broker cannot do for a stream is refused, not left out quietly.
func TestCatalogRefusesWhatCannotBe(t *testing.T) {
	for setting, want := range map[string]string{
		"durable: true":        "storage",
		"queue_policy: sloppy": "queue_policy",
	} {
		_, err := applyCatalog(t, catalogHead+"            "+setting+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %s", setting, err, want)
		}
	}
}
