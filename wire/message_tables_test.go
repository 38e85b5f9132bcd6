package wire

// messageTables is wire 7: each message's fields in order as name, presence
// code (wire 0.3) and type. "T" stands for the fields every group request
// begins with. Ours are expired of cache_event, and what follows request_id in
// group_describe and group_info.
const messageTables = `
auth: tenant_id R string, token R string, client_flags O u16, client_features O u32, client_features_hi O u32
auth_ok: server_flags R u16, server_features O u32, server_features_hi O u32, listener_ports O ports, publish_window O u32, group_ack_batch Z u32
ok:
error: message R string, code O string, retry O string, detail O detail
unsupported: request_type R string, extension O string, request_id O u64
extension: name R string, request_id O u64, body O any
not_leader: node_id R string, addr O string, generation R u64
topology:
topology_view: brokers R brokers
stream_shards: tenant_id R string, namespace R string, stream R string, request_id R u64
stream_shards_view: shards R u32, request_id R u64, routing O routing
cache_shards: tenant_id R string, namespace R string, cache R string, request_id R u64
cache_shards_view: shards R u32, request_id R u64
shard_owners: tenant_id R string, namespace R string, name R string, kind R kind, request_id R u64
shard_owners_view: owners R owners, request_id R u64
publish: tenant_id R string, namespace R string, stream R string, payload R base64, key O base64, request_id O u64, ack O ack
publish_batch: tenant_id R string, namespace R string, stream R string, payloads R base64s, key O base64, request_id O u64, ack O ack
publish_ok: request_id R u64, offset O u64
publish_error: request_id R u64, message R string, code O string, retry O string, detail O detail
producer_init: request_id R u64
producer_init_ok: request_id R u64, producer_id R u64
publish_idempotent: tenant_id R string, namespace R string, stream R string, payloads R base64s, key O base64, request_id R u64, producer_id R u64, sequence R u64
publish_if: tenant_id R string, namespace R string, stream R string, payloads R base64s, key O base64, expected_offset R u64, request_id R u64
publish_refused: request_id R u64, reason R reason, message R string
subscribe: tenant_id R string, namespace R string, stream R string, subscription_id O u64, start O start, shard O u32, queue_capacity O u32
subscribed: subscription_id R u64, start_offset O u64, live_offset O u64, queue_capacity O u32
subscribe_cursor_error: reason R cursor, requested R u64, available R u64
event_stream_hello: subscription_id R u64
event: tenant_id R string, namespace R string, stream R string, payload R base64, offset O u64
event_batch: tenant_id R string, namespace R string, stream R string, payloads R base64s, base_offset O u64
shard_moved: subscription_id R u64, resume_from O u64, node_id O string, addr O string, generation R u64
stream_deleted: subscription_id R u64
subscription_lagged: subscription_id R u64, resume_from R u64
cache_put: tenant_id R string, namespace R string, cache R string, key R string, value R base64, request_id O u64, ttl_ms N? u64
cache_get: tenant_id R string, namespace R string, cache R string, key R string, request_id O u64
cache_delete: tenant_id R string, namespace R string, cache R string, key R string, request_id O u64
cache_value: tenant_id R string, namespace R string, cache R string, key R string, value N base64, request_id O u64, version O u64
cache_ok: request_id R u64
cache_put_if: tenant_id R string, namespace R string, cache R string, key R string, value R base64, ttl_ms O u64, condition R condition, request_id R u64
cache_delete_if: tenant_id R string, namespace R string, cache R string, key R string, version R u64, request_id R u64
cache_condition_result: applied R bool, version O u64, request_id R u64
cache_watch: tenant_id R string, namespace R string, cache R string, key O string, prefix O string, shard O u32, from_offset O u64, retained Z bool, subscription_id O u64
cache_watch_started: subscription_id R u64, resume_offset R u64, resnapshot D bool, retained_count O u64
cache_event: key R string, value O base64, offset R u64, expires_at_millis D u64, expired Z bool
cache_watch_lagged: resume_from R u64
counter_add: tenant_id R string, namespace R string, cache R string, key R string, delta R i64, request_id R u64
counter_get: tenant_id R string, namespace R string, cache R string, key R string, request_id R u64
counter_value: value O i64, request_id R u64
commit: tenant_id R string, namespace R string, stream R string, entity_key R base64, event R base64, changes D changes, request_id R u64, expected_offset O u64
commit_ok: request_id R u64, offset R u64
state_get: tenant_id R string, namespace R string, stream R string, entity_key R base64, key R string, request_id R u64
state_value: value N base64, version O u64, as_of O u64, request_id R u64
offset_for_time: tenant_id R string, namespace R string, stream R string, shard R u32, at_micros R u64, request_id R u64
offset_value: offset O u64, request_id R u64
stream_read: tenant_id R string, namespace R string, stream R string, shard R u32, from R u64, end O u64, max_records Z u32, max_bytes Z u64, request_id R u64
stream_records: records R streamrecords, next_offset R u64, request_id R u64
group_poll: T, max_records R u32, wait_ms D u64, request_id R u64, consumer O string, reclaim Z bool, visibility_ms Z u64
group_ack: T, offset R u64, request_id R u64
group_nack: T, offset R u64, request_id R u64, delay_ms Z u64, attempts Z u32
group_extend: T, offset R u64, attempts R u32, extend_ms R u64, request_id R u64
group_dead_letter: T, offset R u64, request_id R u64
group_dead_letters: T, request_id R u64
group_discard: T, offset R u64, request_id R u64
group_redrive: T, offset R u64, request_id R u64
group_seek: T, start R start, if_new Z bool, request_id R u64
group_describe: T, request_id R u64, held Z bool, held_from Z u64, held_limit Z u32
group_delete: T, request_id R u64
group_records: records R grouprecords, request_id R u64
group_dead_letter_list: offsets R offsets, request_id R u64
group_extended: visible_ms R u64, request_id R u64
group_position: offset R u64, moved R bool, request_id R u64
group_info: committed O u64, tail R u64, in_flight R u64, owed R u64, dead_letters R u64, request_id R u64, high_water O u64, trimmed Z u64, max_attempts Z u32, first O groupheld, next_lapse_micros O u64, held O heldrecords, held_next O u64
group_deleted: existed R bool, request_id R u64
group_ack_batch: T, offsets R offsets, request_id R u64
group_acked: failed O ackfailures, request_id R u64
shard_inspect: tenant_id R string, namespace R string, name R string, kind R kind, shard R u32, request_id R u64
shard_inspect_info: request_id R u64, view R view
subscriptions_list: request_id R u64, filter O filter, limit O u32, cursor O cursorobject
subscriptions_list_info: request_id R u64, node_id R string, subscriptions R subscriptions, next_cursor O cursorobject
`

// objectTables is likewise for the objects inside messages.
const objectTables = `
detail: reason O string, retry_after_ms O u64
broker: node_id R string, addr R string
owner: shard R u32, node_id O string, addr O string, generation R u64, unavailable O string
put: op R opput, key R string, value O base64
streamrecord: offset R u64, payload R base64, publisher O string, timestamp_micros R u64
grouprecord: offset R u64, payload R base64, attempts D u32, skipped_before Z u64, publisher O string, timestamp_micros O u64
groupheld: offset R u64, state R string, attempts Z u32, consumer O string, principal O string, connection Z u64, since_micros O u64, until_micros O u64, reserved Z bool, redriven Z bool
ackfailure: offset R u64, message R string, code O string, retry O string, detail O detail
view: node_id R string, shards R u32, role R string, phase R string, serving R bool, reason O string, detail O string, generation O u64, assignment O assignment, fence O fence, lease O lease, tail O u64, committed O u64, accepted_generation O u64, replicas O replicas
assignment: generation R u64, leader R string, replicas R strings, draining Z bool, successor O string
fence: took R strings, pending R strings, attempts R u32, retry_in_ms O u64
lease: held R bool, remaining_ms R u64
replica: node_id R string, role R string, next_offset O u64, lag O u64, fence O bool, state R string, halted O string
filter: tenant_id O string, namespace O string, stream O string, shard O u32, principal O string, dropping Z bool
cursorobject: tenant_id R string, namespace R string, stream R string, shard R u32, subscriber_id R u64
subscription: tenant_id R string, namespace R string, stream R string, shard R u32, subscriber_id R u64, subscription_id O u64, connection O u64, peer O string, principal O string, policy R string, depth R u64, capacity R u64, dropped R u64, position O u64, tail R u64, age_ms R u64
`

const groupFields = "tenant_id R string, namespace R string, stream R string, shard R u32, group R string"

// arrays of the objects above.
var arrayElements = map[string]string{
	"brokers": "broker", "owners": "owner", "changes": "put", "streamrecords": "streamrecord",
	"grouprecords": "grouprecord", "heldrecords": "groupheld", "ackfailures": "ackfailure", "replicas": "replica", "subscriptions": "subscription",
}

// values of the simple types.
var simpleValues = map[string]string{
	"string": `"é<\"\u0001"`, "base64": `"AP8="`, "base64s": `["","AP8="]`, "strings": `["a",""]`, "bool": "true",
	"u16": "65535", "u32": "4294967295", "u64": "18446744073709551615", "i64": "-9223372036854775808",
	"ports": "[1,65535]", "offsets": "[0,18446744073709551615]", "any": `{"x":[1.50]}`,
	"kind": `"cache"`, "routing": `"jump_hash"`, "ack": `"none"`, "cursor": `"in_future"`, "opput": `"put"`,
	"start": `{"offset":18446744073709551615}`, "condition": `{"version":7}`, "reason": `{"not_leader":{"node_id":"b","addr":"a:1"}}`,
}
