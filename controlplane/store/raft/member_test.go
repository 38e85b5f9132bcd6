package raft

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// A member in a process of its own, which a test can kill or stop as a machine
// would. It is told what to do over HTTP.

const memberEnv = "FELIX_RAFT_TEST_MEMBER"

type memberSpec struct {
	NodeID  uint64
	DataDir string
	Peers   map[uint64]string
}

// runMember is the main function of the process.
func runMember(spec string) int {
	var m memberSpec
	err := json.Unmarshal([]byte(spec), &m)
	if err == nil {
		err = serveMember(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveMember(m memberSpec) error {
	peers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(peers.Addr(), control.Addr())
	s, err := Open(context.Background(), Options{
		NodeID: m.NodeID, DataDir: m.DataDir, Peers: m.Peers, Listener: peers,
		ClusterID: "test", PeerToken: testToken, InitialState: New,
		ElectionTimeout: 300 * time.Millisecond, WriteTimeout: 30 * time.Second, AttemptTimeout: time.Second,
		RetryInterval: 20 * time.Millisecond, SnapshotEntries: 200, SnapshotInterval: 50 * time.Millisecond, LogsKept: 100,
		commitTimeout: 5 * time.Millisecond, askInterval: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	reply := func(w http.ResponseWriter, v any, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/create", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err == nil {
			err = s.CreateTenant(r.Context(), tenant(n))
		}
		reply(w, nil, err)
	})
	mux.HandleFunc("/tenants", func(w http.ResponseWriter, r *http.Request) {
		v, err := s.TenantsSnapshot(r.Context())
		reply(w, v, err)
	})
	mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { reply(w, nil, s.Health(r.Context())) })
	mux.HandleFunc("/leads", func(w http.ResponseWriter, r *http.Request) {
		ok, err := s.MayPlan(r.Context())
		reply(w, ok, err)
	})
	mux.HandleFunc("/votes", func(w http.ResponseWriter, r *http.Request) { reply(w, len(s.unseated(s.raft.Load())) == 0, nil) })
	go func() { _ = http.Serve(control, mux) }()
	_, _ = io.Copy(io.Discard, os.Stdin) // the test holds the other end
	return s.Close()
}
