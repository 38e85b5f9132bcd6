// Package postgres is the store over a Postgres database (control plane 11).
// Instances are stateless and know nothing of each other: every read and write
// goes to one writable primary.
//
// # Writes
//
// A write is one transaction with its entries in the feeds. While it works it
// gathers its changes; at its end it takes their sequences from the rows that
// count them and writes them. Such a row stays locked until the commit, so the
// order of sequences is the order of commits, and no reader can see a sequence
// before a lower one (control plane 5.2).
//
// Rows are locked in one order, so that writes wait for each other and never in
// a circle: the placement lease; the features of the fleet; tenants, namespaces,
// streams, caches; nodes; assignments; everything else; then the counters,
// tenant, namespace, stream, cache, node, shard. Within a table the order is
// that of the keys. Postgres ends a circle that arises all the same, and the
// write is made again.
//
// # Reads
//
// A snapshot is read in one REPEATABLE READ transaction, and a page of changes
// by one statement, so that records and next_seq are of one instant.
//
// # When the database does not answer
//
// Every call has a deadline of its own, on both ends: the database gives up a
// statement or an idle transaction that outlives it, so that an instance which
// vanished keeps nothing locked. What the database did not answer is a
// [*store.UnavailableError]. Errors and log lines never hold the URL's password.
//
// Begin at transaction.go, which every call goes through, and feed.go.
package postgres
