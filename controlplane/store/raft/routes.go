package raft

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/felixlog/felix/controlplane/store/memory"
)

// The routes between members (control plane 12.6). Who calls was proved when
// the connection was made.
const (
	proposeRoute  = "/internal/raft/propose"
	standingRoute = "/internal/raft/standing"
	targetRoute   = "/internal/raft/catch-up-target"
)

// The headers of a proposal and its answer.
const (
	sinceHeader  = "Felix-Raft-Since"  // an index not above that of the first attempt; absent on the first
	indexHeader  = "Felix-Raft-Index"  // where the write is in the log
	refuseHeader = "Felix-Raft-Refuse" // set on an answer that trying again does not change
)

// A standing is what an empty member asks the others for.
type standing struct {
	LastLogIndex uint64 `json:"last_log_index"`
	Withheld     bool   `json:"withheld"`
}

// A target is an index that the leader had when a quorum confirmed it.
type target struct {
	Index uint64 `json:"index"`
	Voter bool   `json:"voter"` // whether the member that asks has a vote
	// Applied is what the leader had applied after it was confirmed: no write that
	// was answered before the question lies behind it.
	Applied uint64 `json:"applied"`
}

// serveRoutes serves until the listener ends.
func (s *Store) serveRoutes(ln net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+proposeRoute, s.servePropose)
	mux.HandleFunc("GET "+standingRoute, s.serveStanding)
	mux.HandleFunc("GET "+targetRoute, s.serveTarget)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          newLibraryLog(s.opts.Logger).StandardLogger(nil),
		BaseContext:       func(net.Listener) context.Context { return s.life },
	}
	_ = server.Serve(ln) // ends with the listener, and its connections with it
}

func (s *Store) servePropose(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxImport))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	var c memory.Command
	if err := json.Unmarshal(data, &c); err != nil {
		refuse(w, http.StatusBadRequest, errors.New("the write is no command"))
		return
	}
	if err := errors.Join(c.Check(), checkSize(c.Op, len(data))); err != nil {
		// What this member does not know must not get into the log: it could not
		// apply it.
		refuse(w, http.StatusBadRequest, err)
		return
	}
	a := attempt{data: data}
	if h := r.Header.Get(sinceHeader); h != "" {
		a.repeat = true
		if a.since, err = strconv.ParseUint(h, 10, 64); err != nil {
			refuse(w, http.StatusBadRequest, errors.New(sinceHeader+" is no number"))
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.opts.AttemptTimeout)
	defer cancel()
	result, index, err := s.accept(ctx, a)
	var refused *refusedError
	switch {
	case errors.Is(err, errForgotten):
		http.Error(w, err.Error(), http.StatusGone)
	case errors.As(err, &refused):
		refuse(w, http.StatusBadRequest, err)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.Header().Set(indexHeader, strconv.FormatUint(index, 10))
		writeJSON(w, result)
	}
}

func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set(refuseHeader, "1")
	http.Error(w, err.Error(), code)
}

func (s *Store) serveStanding(w http.ResponseWriter, _ *http.Request) {
	last, err := s.lastIndex()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, standing{LastLogIndex: last, Withheld: s.withheld.Load()})
}

// serveTarget answers only as a leader that a quorum has confirmed after the
// question came, so that nothing committed before is missing.
func (s *Store) serveTarget(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.opts.AttemptTimeout)
	defer cancel()
	if ok, err := s.confirmed(ctx); err != nil || !ok {
		http.Error(w, errNotLeader.Error(), http.StatusServiceUnavailable)
		return
	}
	last, err := s.lastIndex()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	voter := true
	if raft := s.raft.Load(); slices.Contains(s.unseated(raft), memberID(r.FormValue("member"))) {
		voter = false
	}
	writeJSON(w, target{Index: last, Voter: voter, Applied: s.machine.applied.load()})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the caller sees a cut answer
}
