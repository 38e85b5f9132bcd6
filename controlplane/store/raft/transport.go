package raft

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store/raft/internal/peer"
)

// Members are named by their ids everywhere in the library, also where it wants
// an address: where a member is found is a matter of the settings, and may
// change without touching the log.

func serverID(id uint64) hraft.ServerID           { return hraft.ServerID(strconv.FormatUint(id, 10)) }
func serverAddress(id uint64) hraft.ServerAddress { return hraft.ServerAddress(serverID(id)) }

// memberID is 0 for none.
func memberID[T ~string](s T) uint64 {
	id, err := strconv.ParseUint(string(s), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// A streamLayer is the peer listener as the library sees it.
type streamLayer struct {
	net.Listener
	mux  *peer.Mux
	self uint64
}

// Addr is this member's id.
func (l *streamLayer) Addr() net.Addr { return idAddr(l.self) }

// Dial connects to a member.
func (l *streamLayer) Dial(to hraft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return l.mux.Dial(ctx, peer.Raft, memberID(to))
}

type idAddr uint64

func (idAddr) Network() string  { return "member" }
func (a idAddr) String() string { return strconv.FormatUint(uint64(a), 10) }

var errWithheld = errors.New("this member has lost its state and takes no part in elections until it has caught up")

// A gate is a transport that keeps a member out of elections, in both
// directions, while its vote is withheld (control plane 12.5).
type gate struct {
	*hraft.NetworkTransport
	withheld func() bool
	rpcs     chan hraft.RPC
}

// newGate filters what comes in until done.
func newGate(t *hraft.NetworkTransport, withheld func() bool, done <-chan struct{}) *gate {
	g := &gate{NetworkTransport: t, withheld: withheld, rpcs: make(chan hraft.RPC)}
	go g.filter(done)
	return g
}

func (g *gate) filter(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case rpc := <-g.NetworkTransport.Consumer():
			if g.withheld() && g.refuse(rpc) {
				continue
			}
			select {
			case <-done:
				return
			case g.rpcs <- rpc:
			}
		}
	}
}

// refuse answers what belongs to an election; others are let through.
func (g *gate) refuse(rpc hraft.RPC) bool {
	header := hraft.RPCHeader{ProtocolVersion: hraft.ProtocolVersionMax}
	switch rpc.Command.(type) {
	case *hraft.RequestVoteRequest:
		rpc.Respond(&hraft.RequestVoteResponse{RPCHeader: header}, nil)
	case *hraft.RequestPreVoteRequest:
		rpc.Respond(&hraft.RequestPreVoteResponse{RPCHeader: header}, nil)
	case *hraft.TimeoutNowRequest:
		rpc.Respond(&hraft.TimeoutNowResponse{RPCHeader: header}, errWithheld)
	default:
		return false
	}
	return true
}

// Consumer is what the library takes in.
func (g *gate) Consumer() <-chan hraft.RPC { return g.rpcs }

// RequestVote asks for a vote, unless ours is withheld.
func (g *gate) RequestVote(id hraft.ServerID, to hraft.ServerAddress, args *hraft.RequestVoteRequest, resp *hraft.RequestVoteResponse) error {
	if g.withheld() {
		return errWithheld
	}
	return g.NetworkTransport.RequestVote(id, to, args, resp)
}

// RequestPreVote asks whether a vote would be granted, unless ours is withheld.
func (g *gate) RequestPreVote(id hraft.ServerID, to hraft.ServerAddress, args *hraft.RequestPreVoteRequest, resp *hraft.RequestPreVoteResponse) error {
	if g.withheld() {
		return errWithheld
	}
	return g.NetworkTransport.RequestPreVote(id, to, args, resp)
}
