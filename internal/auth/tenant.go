package auth

import "unicode"

// maxTenantLength bounds a tenant id in bytes (wire 18).
const maxTenantLength = 256

// ValidTenant says whether a tenant id may be looked up at all: 1 to 256
// bytes, neither "." nor "..", no control characters (wire 17.1). The id comes
// from a peer that has proved nothing yet.
func ValidTenant(tenant string) bool {
	if tenant == "" || len(tenant) > maxTenantLength || tenant == "." || tenant == ".." {
		return false
	}
	for _, r := range tenant {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}
