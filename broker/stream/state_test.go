package stream

import (
	"testing"

	"github.com/felixlog/felix/storage/shardlog"
)

// A commit that the build took from the log may be told of later, when newer
// ones are known already.
func TestProjectionTakesEachCommitOnce(t *testing.T) {
	p := projection{keys: map[string]stateEntry{}}
	operations := AppendStateChanges(nil, []StateChange{{Key: []byte("k")}})
	for _, offset := range []uint64{3, 5, 4, 3, 5} {
		if err := p.put(offset, shardlog.Location{Position: int64(offset)}, operations); err != nil {
			t.Fatal(err)
		}
	}
	if e := p.keys["k"]; e.offset != 5 || e.at.Position != 5 || p.asOf != 5 {
		t.Fatalf("%+v as of %d", e, p.asOf)
	}
}
