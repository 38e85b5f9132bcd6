// Package mirror keeps a broker as the control plane's feeds say (control plane
// 5): who exists, and which shards are this broker's.
//
// Each feed has a cursor of its own. A pass reads all of them in a fixed order
// (tenants, namespaces, caches, streams, assignments) into a picture, and then
// makes the target agree with the picture. Nothing but an order makes a thing
// go: a record that a new snapshot lacks stays in the picture and goes on being
// served, and is named in the log. Data is removed on a tombstone alone, and
// only data of the tombstone's uid.
package mirror
