package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/felixlog/felix/client"
)

// parseClaim reads SHARD:OFFSET or SHARD:OFFSET:ATTEMPTS, as "felix group
// poll" prints them. Attempts count from 1; without them they are 0.
func parseClaim(text string) (client.Claim, error) {
	wrong := usageError("claim %q: want SHARD:OFFSET or SHARD:OFFSET:ATTEMPTS, as \"felix group poll\" prints them", text)
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return client.Claim{}, wrong
	}
	shard, err := decimal(parts[0], 32)
	if err != nil {
		return client.Claim{}, wrong
	}
	claim := client.Claim{Shard: uint32(shard)}
	if claim.Offset, err = decimal(parts[1], 64); err != nil {
		return client.Claim{}, wrong
	}
	if len(parts) == 3 {
		attempts, err := decimal(parts[2], 32)
		if err != nil {
			return client.Claim{}, wrong
		}
		if attempts == 0 {
			return client.Claim{}, usageError("claim %q: attempts count from 1", text)
		}
		claim.Attempts = uint32(attempts)
	}
	return claim, nil
}

// decimal reads a number of nothing but digits.
func decimal(text string, bits int) (uint64, error) {
	if strings.HasPrefix(text, "+") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(text, 10, bits)
}

// parseClaims reads the claims of a command line, each record once.
func parseClaims(texts []string) ([]client.Claim, error) {
	type record struct {
		shard  uint32
		offset uint64
	}
	seen := make(map[record]bool, len(texts))
	claims := make([]client.Claim, 0, len(texts))
	for _, text := range texts {
		claim, err := parseClaim(text)
		if err != nil {
			return nil, err
		}
		if at := (record{claim.Shard, claim.Offset}); seen[at] {
			return nil, usageError("claim %q: record %d:%d is named twice", text, claim.Shard, claim.Offset)
		} else {
			seen[at] = true
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// formatClaim writes a claim so that parseClaim reads it.
func formatClaim(c client.Claim) string {
	if c.Attempts == 0 {
		return fmt.Sprintf("%d:%d", c.Shard, c.Offset)
	}
	return fmt.Sprintf("%d:%d:%d", c.Shard, c.Offset, c.Attempts)
}
