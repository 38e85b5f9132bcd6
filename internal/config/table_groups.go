package config

import "time"

// maxClaim bounds how long a record may be kept from other consumers.
const maxClaim = 7 * 24 * time.Hour

func (g *Groups) settings() []Setting {
	return []Setting{
		{Key: "group_visibility_timeout_ms", Env: "FELIX_GROUP_VISIBILITY_TIMEOUT_MS", Default: "30000",
			value: durationValue{p: &g.Visibility, unit: time.Millisecond, min: time.Millisecond, max: maxClaim},
			Help:  "How long a record that was handed to a consumer is kept from the others, where the poll names no time of its own; not finished by then, it is handed out again."},
		{Key: "group_max_visibility_ms", Env: "FELIX_GROUP_MAX_VISIBILITY_MS", Default: "43200000",
			value: durationValue{p: &g.MaxVisibility, unit: time.Millisecond, min: time.Millisecond, max: maxClaim},
			Help:  "The longest of what a client may ask for: the visibility of a poll, the prolonging of a claim, the delay of a record handed back. More is cut to it."},
		{Key: "group_max_attempts", Env: "FELIX_GROUP_MAX_ATTEMPTS", Default: "5", value: countValue{&g.MaxAttempts, 1, 1 << 20},
			Help: "How often a record is handed out. Not finished after the last time, it becomes a dead letter."},
		{Key: "group_max_wait_ms", Env: "FELIX_GROUP_MAX_WAIT_MS", Default: "30000",
			value: durationValue{p: &g.MaxWait, unit: time.Millisecond, min: time.Millisecond, max: time.Hour},
			Help:  "The longest that a poll waits for a record; more is cut to it."},
		{Key: "group_max_in_flight", Env: "FELIX_GROUP_MAX_IN_FLIGHT", Default: "10000", value: countValue{&g.MaxInFlight, 1, 1 << 20},
			Help: "Records of one group and shard that may be handed out, delayed or owed and not finished. At that number polls give only what is owed."},
	}
}
