package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

func policies(lines ...string) []model.Policy {
	var all []model.Policy
	for _, line := range lines {
		f := strings.Fields(line)
		all = append(all, model.Policy{Subject: f[0], Action: f[1], Object: f[2]})
	}
	return all
}

func effective(t *testing.T, rules []model.Policy, links []model.Grouping, subjects ...string) []string {
	t.Helper()
	list := []string{}
	for _, p := range Effective("t1", rules, links, subjects) {
		list = append(list, p.String())
	}
	if !slices.IsSorted(list) {
		t.Fatalf("not sorted: %v", list)
	}
	return list
}

func TestEffectiveExpands(t *testing.T) {
	six := func(namespace string) []string {
		var list []string
		for _, a := range []string{"cache.manage", "cache.read", "cache.write"} {
			list = append(list, a+":cache:t1/"+namespace+"/*")
		}
		list = append(list, "X")
		for _, a := range []string{"stream.manage", "stream.publish", "stream.subscribe"} {
			list = append(list, a+":stream:t1/"+namespace+"/*")
		}
		return list
	}
	with := func(list []string, own ...string) []string {
		at := slices.Index(list, "X")
		return slices.Insert(slices.Delete(list, at, at+1), at, own...)
	}
	for name, test := range map[string]struct {
		rule string
		want []string
	}{
		"tenant":    {"u tenant.manage tenant:t1", append(with(six("*"), "ns.manage:namespace:t1/*"), "tenant.manage:tenant:t1")},
		"namespace": {"u ns.manage namespace:t1/n", with(six("n"), "ns.manage:namespace:t1/n")},
		"all of it": {"u ns.manage namespace:t1/*", with(six("*"), "ns.manage:namespace:t1/*")},
		"cluster":   {"u tenant.manage cluster:*", []string{"tenant.manage:cluster:*"}},
		"rights":    {"u rbac.policy.manage tenant:t1", []string{"rbac.policy.manage:tenant:t1"}},
		// The flaw of control plane 16.4: these must not expand, nor be there.
		"escalation by namespace": {"u tenant.manage namespace:t1/n", []string{}},
		"escalation by stream":    {"u tenant.manage stream:t1/n/s", []string{}},
		"escalation by cache":     {"u tenant.manage cache:t1/n/c", []string{}},
		"stream as namespace":     {"u ns.manage stream:t1/n/s", []string{}},
		"other tenant":            {"u tenant.manage tenant:t2", []string{}},
		"other tenant's stream":   {"u stream.publish stream:t2/n/s", []string{}},
		"no action":               {"u stream.paint stream:t1/n/s", []string{}},
		"no object":               {"u stream.publish stream:t1/*/s", []string{}},
		"other subject":           {"v stream.publish stream:t1/n/s", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := effective(t, policies(test.rule), nil, "u"); !slices.Equal(got, test.want) {
				t.Errorf("%v\nwant %v", got, test.want)
			}
		})
	}
}

func TestEffectiveFollowsRoles(t *testing.T) {
	rules := policies("r1 stream.publish stream:t1/n/1", "r2 stream.publish stream:t1/n/2", "g stream.publish stream:t1/n/g",
		"u stream.publish stream:t1/n/1")
	links := []model.Grouping{{User: "u", Role: "r1"}, {User: "r1", Role: "r2"}, {User: "r2", Role: "r1"}, {User: "x", Role: "g"}}
	want := []string{"stream.publish:stream:t1/n/1", "stream.publish:stream:t1/n/2"}
	if got := effective(t, rules, links, "u"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = append(want, "stream.publish:stream:t1/n/g")
	if got := effective(t, rules, links, "u", "g"); !slices.Equal(got, want) {
		t.Errorf("with a group: %v, want %v", got, want)
	}
}

func TestEffectiveStopsAtDepth(t *testing.T) {
	var rules []model.Policy
	var links []model.Grouping
	for i := range MaxDepth + 3 {
		rules = append(rules, policies(fmt.Sprintf("r%d stream.publish stream:t1/n/%d", i, i))...)
		links = append(links, model.Grouping{User: fmt.Sprintf("r%d", i), Role: fmt.Sprintf("r%d", i+1)})
	}
	if got := len(effective(t, rules, links, "r0")); got != MaxDepth+1 {
		t.Errorf("%d roles are reached, want the subject and %d", got, MaxDepth)
	}
}

func TestValidRule(t *testing.T) {
	good := map[Action]string{
		RBACView:             "tenant:t1 namespace:t1/n stream:t1/n/s cache:t1/n/c",
		RBACPolicyManage:     "tenant:t1 namespace:t1/n stream:t1/n/s cache:t1/n/c",
		RBACAssignmentManage: "tenant:t1 namespace:t1/n stream:t1/n/s cache:t1/n/c",
		TenantManage:         "tenant:t1 cluster:*",
		NamespaceManage:      "namespace:t1/n",
		StreamManage:         "stream:t1/n/s",
		StreamPublish:        "stream:t1/n/s",
		StreamSubscribe:      "stream:t1/n/s",
		CacheManage:          "cache:t1/n/c",
		CacheRead:            "cache:t1/n/c cache:t1/n/c/k",
		CacheWrite:           "cache:t1/n/c cache:t1/n/c/k",
		GroupConsume:         "stream:t1/n/s group:t1/n/s/g",
		GroupManage:          "stream:t1/n/s group:t1/n/s/g",
		NodeView:             "cluster:*",
		NodeManage:           "node:a cluster:*",
		TokenDelegate:        "tenant:t1",
	}
	for action, list := range good {
		for _, text := range []string{
			"cluster:*", "node:a", "tenant:t1", "namespace:t1/n", "stream:t1/n/s", "cache:t1/n/c", "cache:t1/n/c/k", "group:t1/n/s/g",
		} {
			err := ValidRule(action, mustObject(t, text))
			if want := slices.Contains(strings.Fields(list), text); (err == nil) != want {
				t.Errorf("%v over %s: %v, want allowed: %v", action, text, err, want)
			}
		}
	}
	if ValidRule(0, Cluster()) == nil || ValidRule(StreamPublish, Object{}) == nil {
		t.Error("no action, or no object, is a rule")
	}
}
