package raft

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// A whole store comes in as one entry, packed.
func TestImport(t *testing.T) {
	t.Parallel()
	from := openAlone(t, Options{DataDir: t.TempDir(), noSync: true})
	createTenants(t, from, 0, 1)
	d, err := from.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.Namespaces = nil
	for i := range 300 {
		d.Namespaces = append(d.Namespaces, model.Namespace{TenantID: tenant(0).TenantID, Namespace: fmt.Sprintf("n%06d", i), DisplayName: fmt.Sprintf("%01024d", i*i)})
	}
	g := newGroup(t, 3, Options{ElectionTimeout: time.Second, AttemptTimeout: patience, WriteTimeout: patience})
	s := g.members[g.follower()]
	if err := s.Import(t.Context(), d, false); err != nil {
		t.Fatal(err)
	}
	got, err := s.Namespaces(t.Context(), tenant(0).TenantID)
	if err != nil || len(got) != len(d.Namespaces) {
		t.Fatalf("%d namespaces, %v", len(got), err)
	}
	var conflict *store.ConflictError
	if err := s.Import(t.Context(), d, false); !errors.As(err, &conflict) || conflict.Reason != store.NotEmpty {
		t.Errorf("second import: %v", err)
	}
	g.level()
}

func TestPack(t *testing.T) {
	noise := make([]byte, packFrom)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]byte{
		[]byte(`{"v":1}`),
		append([]byte("{"), bytes.Repeat([]byte("ab"), packFrom)...),
		append([]byte("{"), noise...),
	} {
		entry, err := pack(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(entry) > len(c)+1024 {
			t.Errorf("%d bytes became %d", len(c), len(entry))
		}
		got, err := unpack(entry, len(c))
		if err != nil || !bytes.Equal(got, c) {
			t.Errorf("%d bytes came back as %d, %v", len(c), len(got), err)
		}
	}
	large, err := pack(bytes.Repeat([]byte("{"), 2*packFrom))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(large, packFrom); err == nil {
		t.Error("an entry larger than the limit was unpacked")
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		op   string
		size int
		ok   bool
	}{
		{"create_tenant", maxCommand, true},
		{"create_tenant", maxCommand + 1, false},
		{importOp, maxCommand + 1, true},
		{importOp, maxImport + 1, false},
	} {
		if err := checkSize(c.op, c.size); (err == nil) != c.ok {
			t.Errorf("%s of %d bytes: %v", c.op, c.size, err)
		}
	}
}
