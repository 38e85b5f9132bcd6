package api

import (
	"context"
	"net/http"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// Since is the query parameters of a change feed (control plane 5.4).
type Since struct {
	From   string `query:"since" doc:"The first sequence to answer; a number, else 0."`
	WaitMS string `query:"wait_ms" doc:"How long to wait for a change, in milliseconds up to 25000; a number, else 0."`
}

func (q Since) from() uint64 { return numberOr(q.From, 0) }

func (q Since) wait() time.Duration {
	return time.Duration(min(numberOr(q.WaitMS, 0), uint64(maxWait/time.Millisecond))) * time.Millisecond
}

// feedRoutes are those of control plane 5. All feeds let their readers wait;
// that of the assignments is the one that brokers count on.
func (s *surface) feedRoutes() {
	st := s.o.Store
	feed(s, "tenants", st.TenantsSnapshot, s.tenants)
	feed(s, "namespaces", st.NamespacesSnapshot, s.namespaces)
	feed(s, "streams", st.StreamsSnapshot, s.streams)
	feed(s, "caches", st.CachesSnapshot, s.caches)
	feed(s, "shard-assignments", st.AssignmentsSnapshot, s.assignments)
}

// feed makes the two routes of a kind.
func feed[T any, C model.Sequenced](s *surface, kind string, snapshot func(context.Context) (model.Snapshot[T], error), changes *watch[C]) {
	const tag = "feeds"
	add(s, route{
		id: kind + "-snapshot", method: http.MethodGet, path: "/v1/" + kind + "/snapshot", tag: tag,
		summary: "All " + kind + " at one instant", who: anyTenant, allow: inCluster(rbac.NodeView),
	}, func(ctx context.Context, _ *struct{}) (*struct{ Body model.Snapshot[T] }, error) {
		snap, err := snapshot(ctx)
		if snap.Items == nil {
			snap.Items = []T{}
		}
		return &struct{ Body model.Snapshot[T] }{snap}, err
	})
	add(s, route{
		id: kind + "-changes", method: http.MethodGet, path: "/v1/" + kind + "/changes", tag: tag,
		summary: "Changes of " + kind + " in their order",
		about: "Items from since on, oldest first, and the head of the log. A first item beyond since, no item and a head " +
			"that is not since, and a head before since all mean: take a new snapshot.",
		who: anyTenant, allow: inCluster(rbac.NodeView),
	}, func(ctx context.Context, in *struct{ Since }) (*struct{ Body model.Page[C] }, error) {
		page, err := changes.page(ctx, in.from(), in.wait())
		if page.Items == nil {
			page.Items = []C{}
		}
		return &struct{ Body model.Page[C] }{page}, err
	})
}
