package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// positions is a place to begin reading: one offset, or one for each of some
// shards.
type positions struct {
	offset uint64
	shards map[uint32]uint64
}

// parsePositions reads OFFSET, or SHARD:OFFSET with commas between.
func parsePositions(text string) (positions, error) {
	wrong := func() (positions, error) {
		return positions{}, usageError("--from %q: want latest, earliest, an offset, or SHARD:OFFSET with commas between", text)
	}
	if !strings.Contains(text, ":") {
		offset, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return wrong()
		}
		return positions{offset: offset}, nil
	}
	out := positions{shards: make(map[uint32]uint64)}
	for part := range strings.SplitSeq(text, ",") {
		left, right, ok := strings.Cut(part, ":")
		shard, err := strconv.ParseUint(left, 10, 32)
		if !ok || err != nil {
			return wrong()
		}
		offset, err := strconv.ParseUint(right, 10, 64)
		if err != nil {
			return wrong()
		}
		if _, twice := out.shards[uint32(shard)]; twice {
			return positions{}, usageError("--from names shard %d twice", shard)
		}
		out.shards[uint32(shard)] = offset
	}
	return out, nil
}

// formatPositions writes positions so that parsePositions reads them.
func formatPositions(at map[uint32]uint64) string {
	var parts []string
	for _, shard := range slices.Sorted(maps.Keys(at)) {
		parts = append(parts, fmt.Sprintf("%d:%d", shard, at[shard]))
	}
	return strings.Join(parts, ",")
}
