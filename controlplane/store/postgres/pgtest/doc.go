// Package pgtest gives tests a real Postgres. One server runs for a test binary,
// started by the first test that asks and stopped by [Main]; every test has a
// database of its own. The binaries are looked for in PATH and where
// distributions put them.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestSomething(t *testing.T) { url := pgtest.Start(t) ... }
//
// A test that stops its server takes one for itself with [StartServer]; one that
// cuts or silences the way to it puts a [Proxy] between.
package pgtest
