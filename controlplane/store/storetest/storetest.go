// Package storetest is the contract of controlplane/store as tests: every
// backend passes them (control plane 25.1 to 25.3).
package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// Options are what a test asks of the store that it opens.
type Options struct {
	Limits store.Limits
	// Clock is the store's, where the backend has one that can be set. The suite
	// asks for it to show that a clock that is set back does no harm; a backend
	// with a clock of its own ignores it.
	Clock func() time.Time
}

// Run runs the contract. open opens an empty store, and closes it at the end of
// the test. A store that thins its feeds out from time to time must do so often
// here, every 100 ms or less.
func Run(t *testing.T, open func(t *testing.T, o Options) store.Store) {
	// Most tests share a store, and keep to names of their own: opening one may
	// be slow.
	t.Run("Shared", func(t *testing.T) {
		s := open(t, Options{})
		n := 0
		for _, c := range shared {
			n++
			t.Run(c.name, func(t *testing.T) { c.test(newFixture(t, s, fmt.Sprintf("t%02d", n))) })
		}
	})
	for _, c := range alone {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// Tests over a store that others have used and will use.
var shared = []struct {
	name string
	test func(f *fixture)
}{
	{"Tenants", testTenants},
	{"Namespaces", testNamespaces},
	{"Streams", testStreams},
	{"StreamPatches", testStreamPatches},
	{"Caches", testCaches},
	{"CallersOwnWhatTheyGet", testCopies},
	{"NamesSortByBytes", testSorting},
	{"Resources", testResources},
	{"Bridges", testBridges},
	{"DeleteStreamAndCache", testDeleteOwners},
	{"DeleteNamespace", testDeleteNamespace},
	{"DeleteTenant", testDeleteTenant},
	{"FeedsAreDense", testFeedsDense},
	{"FeedsUnderConcurrentWriters", testFeedsConcurrent},
	{"Registration", testRegistration},
	{"Addresses", testAddresses},
	{"Heartbeats", testHeartbeats},
	{"NodePatches", testNodePatches},
	{"Lifecycles", testLifecycles},
	{"DeleteNode", testDeleteNode},
	{"Expiry", testExpiry},
	{"ExpiryClaimsOnce", testExpiryRace},
	{"PutAssignmentIf", testPutIf},
	{"PutAssignmentIfRace", testPutIfRace},
	{"PutAssignmentsIf", testPutsIf},
	{"AssignmentRules", testRules},
	{"AssignmentStates", testStates},
	{"AssignmentLists", testAssignmentLists},
	{"DeleteAssignment", testDeleteAssignment},
	{"AssignmentsChanged", testAssignmentsChanged},
	{"Reports", testReports},
	{"Pause", testPause},
	{"Lease", testLease},
	{"Issuers", testIssuers},
	{"Rules", testPolicies},
	{"AuthOfUnknownTenant", testUnknownTenant},
	{"SigningKeys", testKeys},
	{"EnsureSigningKeyRace", testEnsureRace},
	{"TenantWithKey", testTenantWithKey},
	{"TenantWithKeyRace", testTenantWithKeyRace},
	{"Bootstrap", testBootstrap},
	{"BootstrapMakesTheTenant", testBootstrapMakes},
	{"BootstrapRace", testBootstrapRace},
	{"RefreshTokens", testRefreshTokens},
	{"RefreshTokenRace", testRefreshRace},
	{"RefreshTokenFamilies", testFamilies},
	{"RefreshTokenPurge", testPurge},
}

// Tests over stores of their own.
var alone = []struct {
	name string
	test func(t *testing.T, open func(t *testing.T, o Options) store.Store)
}{
	{"Empty", testEmpty},
	{"FeedPages", testFeedPages},
	{"Eviction", testEviction},
	{"Features", testFeatures},
	{"ClockSetBack", testClockSetBack},
	{"ExportAndImport", testExportImport},
	{"ImportOverwrites", testOverwrite},
	{"ImportRefusals", testImportRefusals},
	{"Close", testClose},
}
