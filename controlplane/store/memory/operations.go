package memory

import "encoding/json"

// An operation applies the body of a command.
type operation func(s *State, body []byte) Result

// The operations of commands, by name. A name that is in a log keeps its
// meaning for ever.
var operations = map[string]operation{
	"create_tenant":          done((*State).createTenant),
	"create_tenant_with_key": done((*State).createTenantWithKey),
	"delete_tenant":          done((*State).deleteTenant),
	"create_namespace":       done((*State).createNamespace),
	"delete_namespace":       done((*State).deleteNamespace),
	"create_stream":          done((*State).createStream),
	"patch_stream":           gives("stream", (*State).patchStream),
	"delete_stream":          done((*State).deleteStream),
	"create_cache":           done((*State).createCache),
	"patch_cache":            gives("cache", (*State).patchCache),
	"delete_cache":           done((*State).deleteCache),
	"create_resources":       done((*State).createResources),
	"put_bridge":             done((*State).putBridge),
	"delete_bridge":          done((*State).deleteBridge),

	"register_node":      gives("node", (*State).registerNode),
	"patch_node":         gives("node", (*State).patchNode),
	"set_node_lifecycle": gives("lifecycle", (*State).setLifecycle),
	"delete_node":        done((*State).deleteNode),
	"record_heartbeat":   gives("node", (*State).heartbeat),
	"expire_stale_nodes": gives("expired", (*State).expireStale),
	"enable_feature":     gives("lacking", (*State).enableFeature),

	"put_assignment_if":  gives("put", (*State).putAssignmentIf),
	"put_assignments_if": gives("puts", (*State).putAssignmentsIf),
	"delete_assignment":  done((*State).deleteAssignment),
	"record_reports":     gives("outcomes", (*State).recordReports),
	"set_moves_paused":   done((*State).setMovesPaused),
	"take_lease":         gives("lease", (*State).takeLease),
	"release_lease":      done((*State).releaseLease),

	"put_issuer":           done((*State).putIssuer),
	"delete_issuer":        done((*State).deleteIssuer),
	"add_policy":           done((*State).addPolicy),
	"remove_policy":        done((*State).removePolicy),
	"add_grouping":         done((*State).addGrouping),
	"remove_grouping":      done((*State).removeGrouping),
	"ensure_signing_key":   gives("keys", (*State).ensureKey),
	"stage_signing_key":    gives("keys", (*State).stageKey),
	"activate_signing_key": gives("keys", (*State).activateKey),
	"retire_signing_key":   gives("keys", (*State).retireKey),
	"bootstrap_tenant":     done((*State).bootstrapTenant), // in logs only: initialize_tenant took its place
	"initialize_tenant":    gives("keys", (*State).initializeTenant),

	"insert_refresh_token":     done((*State).insertToken),
	"take_refresh_token":       gives("refresh_token", (*State).takeToken),
	"revoke_refresh_family":    gives("count", (*State).revokeFamily),
	"revoke_refresh_principal": gives("count", (*State).revokePrincipal),
	"purge_refresh_tokens":     gives("count", (*State).purgeTokens),

	"import_state": done((*State).importDump),
}

// Results are compared byte for byte, and the words of a JSON error are not
// ours: they may change with the library.
var (
	errMalformed    = Result{Kind: KindError, Error: &ResultError{Kind: ErrorInternal, Detail: "the body of the command is malformed"}}
	errUnanswerable = Result{Kind: KindError, Error: &ResultError{Kind: ErrorInternal, Detail: "the result of the command has no JSON form"}}
)

// gives makes an operation of a method that answers with a value. A method that
// fails has changed nothing.
func gives[B, V any](kind string, apply func(*State, B) (V, error)) operation {
	return func(s *State, body []byte) Result {
		var b B
		if json.Unmarshal(body, &b) != nil {
			return errMalformed
		}
		v, err := apply(s, b)
		if err != nil {
			return refused(err)
		}
		value, err := json.Marshal(v)
		if err != nil {
			return errUnanswerable
		}
		return Result{Kind: kind, Value: value}
	}
}

// done makes an operation of a method that answers with nothing.
func done[B any](apply func(*State, B) error) operation {
	return func(s *State, body []byte) Result {
		var b B
		if json.Unmarshal(body, &b) != nil {
			return errMalformed
		}
		if err := apply(s, b); err != nil {
			return refused(err)
		}
		return Result{Kind: KindDone}
	}
}
