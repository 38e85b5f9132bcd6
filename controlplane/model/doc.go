// Package model holds the records of the control plane: who exists, who may,
// and who serves what. Their JSON form is that of the API (control plane 3, 5);
// an optional field that is unset is left out where its tag says omitempty, and
// null otherwise. Times are milliseconds since the Unix epoch, on the clock of
// the store, unless a name says seconds.
//
// The package decides nothing and imports nothing of ours, so that services,
// clients and stores can share it.
package model
