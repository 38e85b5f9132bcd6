package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// manyStreams is how many streams a broker has to be able to start with.
const manyStreams = 10_000

// benchRig is an instance with that many streams.
func benchRig(b *testing.B) *apiclient.Client {
	b.Helper()
	st := memory.Open(memory.Options{})
	b.Cleanup(func() { _ = st.Close() })
	r := startRig(b, st)
	r.tenant("ops")
	ctx, ns := b.Context(), model.NamespaceKey{TenantID: "ops", Namespace: "ns"}
	if err := st.CreateNamespace(ctx, model.Namespace{TenantID: "ops", Namespace: "ns"}); err != nil {
		b.Fatal(err)
	}
	for at := 0; at < manyStreams; at += 1000 {
		streams := make([]model.Stream, 1000)
		for i := range streams {
			streams[i] = model.Stream{
				TenantID: "ops", Namespace: "ns", Stream: fmt.Sprintf("stream-%05d", at+i), Kind: model.KindStream, Shards: 1, ReplicationFactor: 1,
				Consistency: model.Leader, Delivery: model.AtLeastOnce, UID: fmt.Sprintf("%032d", at+i),
			}
		}
		if err := st.CreateResources(ctx, ns, streams, nil); err != nil {
			b.Fatal(err)
		}
	}
	c, err := apiclient.New(apiclient.Options{URL: r.base, HTTP: r.http, Token: tokenSource(r.token("ops", "node.view:cluster:*", "stream.manage:stream:ops/*/*"))})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkSnapshot is how long a broker waits for all streams, over HTTP and
// decoded. It has to stay below a second.
func BenchmarkSnapshot(b *testing.B) {
	c := benchRig(b)
	for b.Loop() {
		snap, err := c.StreamsSnapshot(b.Context())
		if err != nil || len(snap.Items) != manyStreams {
			b.Fatal(len(snap.Items), err)
		}
	}
}

// BenchmarkChangeToReader is the time from the beginning of a write to the
// answer of a reader that waits, with everything over HTTP.
func BenchmarkChangeToReader(b *testing.B) {
	c := benchRig(b)
	snap, err := c.StreamsSnapshot(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	key := model.StreamKey{TenantID: "ops", Namespace: "ns", Stream: "stream-00000"}
	since, durable := snap.NextSeq, true
	for b.Loop() {
		b.StopTimer()
		got := make(chan error, 1)
		go func() {
			p, err := c.StreamChanges(b.Context(), since, apiclient.MaxWait)
			if err == nil && len(p.Items) != 1 {
				err = fmt.Errorf("%d changes", len(p.Items))
			}
			got <- err
		}()
		time.Sleep(5 * time.Millisecond) // so that it waits
		b.StartTimer()
		if _, err := c.PatchStream(b.Context(), key, model.StreamPatch{Durable: &durable}); err != nil {
			b.Fatal(err)
		}
		if err := <-got; err != nil {
			b.Fatal(err)
		}
		since, durable = since+1, !durable
	}
}
