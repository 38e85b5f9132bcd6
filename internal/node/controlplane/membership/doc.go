// Package membership makes a broker a member of the cluster (control plane 6):
// it registers, sends heartbeats, keeps the lease that they renew, and says
// good-bye.
package membership
