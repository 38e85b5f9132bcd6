// Package admission decides whether a publish may take up room: the tenant's
// rate first, so that a tenant over its quota holds no shared memory, then
// three byte budgets from the inside out, the identity on its connection, the
// connection, the process (broker 3.2, 3.3).
package admission
