package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// A store that has held nothing takes an export of another, and one that has
// refuses it.
func TestMigrate(t *testing.T) {
	ta := newTestApp(t, nil)
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	p := startPlane(t, map[string]string{"raft-data-dir": from})
	ta.fails(t, ExitOther, "controlplane", "migrate", "export", "--raft-data-dir", from, "x.json") // it runs
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts := ta.runs(t, "controlplane", "migrate", "export", "--raft-data-dir", from, "dump.json")
	if !strings.Contains(counts, "tenants       1") {
		t.Errorf("counted %q", counts)
	}
	info, err := os.Stat(filepath.Join(ta.Dir, "dump.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if again := ta.runs(t, "controlplane", "migrate", "import", "--raft-data-dir", to, "dump.json"); again != counts {
		t.Errorf("read %q", again)
	}
	if said := ta.fails(t, ExitRefused, "controlplane", "migrate", "import", "--raft-data-dir", to, "dump.json"); !strings.Contains(said, "--overwrite") {
		t.Errorf("said %q", said)
	}
	ta.runs(t, "controlplane", "migrate", "import", "--overwrite", "--raft-data-dir", to, "dump.json")
	dump, err := os.ReadFile(filepath.Join(ta.Dir, "dump.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"cut off": `{"version":1,"tenants":[`, "of a later version": `{"version":99}`, "with more behind": string(dump) + "{}", "something else": "hello",
		"with an unknown field": `{"version":1,"secrets":[]}`,
	} {
		if err := os.WriteFile(filepath.Join(ta.Dir, "bad.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := ta.fails(t, ExitUsage, "controlplane", "migrate", "import", "--raft-data-dir", filepath.Join(to, "new"), "bad.json"); strings.Contains(said, "seed") {
			t.Errorf("%s: a key may be told: %q", name, said)
		}
		if _, err := os.Stat(filepath.Join(to, "new")); !os.IsNotExist(err) {
			t.Errorf("%s: a store was opened for it", name)
		}
	}
	ta.fails(t, ExitUsage, "controlplane", "migrate", "import", "--raft-data-dir", to, "gone.json")
	ta.fails(t, ExitUsage, "controlplane", "migrate", "import", "dump.json") // into memory?
	ta.fails(t, ExitUsage, "controlplane", "migrate", "export", "x.json")
	ta.fails(t, ExitNotFound, "controlplane", "migrate", "export", "--raft-data-dir", filepath.Join(to, "typo"), "x.json")
	ta.fails(t, ExitUsage, "controlplane", "migrate", "schema")
}

// Metadata goes from Raft to Postgres and back, all of it, and feeds go on where
// they were: a broker that was up to date notices nothing.
func TestMigrateThroughPostgres(t *testing.T) {
	ta := newTestApp(t, nil)
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	p := startPlane(t, map[string]string{"raft-data-dir": from})
	admin := p.app(t, administrator()...)
	for _, line := range [][]string{
		{"namespace", "create", "default"}, {"stream", "create", "orders", "--shards", "3", "--retention-secs", "60"}, {"stream", "create", "gone"}, {"stream", "rm", "gone", "--yes"},
		{"cache", "create", "users"}, {"rbac", "policy", "add", "role:reader", "stream:acme/default/*", "stream.subscribe"}, {"rbac", "grouping", "add", "ann", "role:reader"},
		{"tenant", "issuer", "add", "https://idp.example", "--audience", "felix"}, {"tenant", "keys", "stage"}, {"placement", "pause"},
	} {
		admin.runs(t, line...)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	database := pgtest.Start(t)
	migrate := func(args ...string) string {
		return ta.runs(t, append([]string{"controlplane", "migrate"}, args...)...)
	}
	if out := migrate("schema", "--postgres-url", database); !strings.Contains(out, "the schema went from version 0 to ") {
		t.Errorf("said %q", out)
	}
	if out := migrate("schema", "--postgres-url", database); !strings.Contains(out, "the schema is up to date") {
		t.Errorf("said %q", out)
	}
	first := migrate("export", "--raft-data-dir", from, "1.json", "--json")
	for _, counts := range []string{
		migrate("import", "--postgres-url", database, "1.json", "--json"), migrate("export", "--postgres-url", database, "2.json", "--json"),
		migrate("import", "--raft-data-dir", to, "2.json", "--json"), migrate("export", "--raft-data-dir", to, "3.json", "--json"),
	} {
		if counts != first {
			t.Errorf("counted %s, at first %s", counts, first)
		}
	}
	if !strings.Contains(first, `"streams":1,`) || !strings.Contains(first, `"signing_keys":2,`) || !strings.Contains(first, `"groupings":1,`) {
		t.Errorf("counted %s", first)
	}
	var dumps [3]model.Dump
	for i, name := range []string{"1.json", "2.json", "3.json"} {
		data, err := os.ReadFile(filepath.Join(ta.Dir, name))
		if err == nil {
			err = json.Unmarshal(data, &dumps[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range dumps {
		if dumps[i].NextSeq != dumps[0].NextSeq || !dumps[i].MovesPaused || len(dumps[i].Tombstones) != 1 || dumps[i].Tombstones[0] != dumps[0].Tombstones[0] {
			t.Errorf("export %d: heads %+v, at first %+v", i+1, dumps[i].NextSeq, dumps[0].NextSeq)
		}
		if dumps[i].Streams[0].UID != dumps[0].Streams[0].UID || dumps[i].Token < dumps[0].Token {
			t.Errorf("export %d: %+v, placement token %d", i+1, dumps[i].Streams[0], dumps[i].Token)
		}
	}

	again := startOn(t, p, map[string]string{"raft-data-dir": to})
	api, err := apiclient.New(apiclient.Options{URL: "http://" + again.Addr(), Token: again.tokens(t, "node.view:cluster:*")})
	if err != nil {
		t.Fatal(err)
	}
	defer api.CloseIdle()
	head := dumps[0].NextSeq.Streams
	page, err := api.StreamChanges(t.Context(), head, 0)
	if err != nil || len(page.Items) != 0 || page.NextSeq != head {
		t.Errorf("a broker at %d is told %+v (%v)", head, page, err)
	}
	again.app(t, administrator()...).runs(t, "stream", "create", "later")
	page, err = api.StreamChanges(t.Context(), head, 0)
	if err != nil || len(page.Items) != 1 || page.NextSeq != head+1 || page.Items[0].Key.Stream != "later" {
		t.Errorf("it goes on with %+v (%v)", page, err)
	}
}
