package raft

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/raft/internal/peer"
)

// hostPrefix makes a member's id a host name, so that connections are pooled by
// member.
const hostPrefix = "member-"

func memberURL(id uint64, route string) string {
	return "http://" + hostPrefix + strconv.FormatUint(id, 10) + route
}

// newCaller makes the client of the routes of other members.
func newCaller(mux *peer.Mux) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				host, _, err := net.SplitHostPort(addr)
				if err != nil {
					return nil, err
				}
				return mux.Dial(ctx, peer.HTTP, memberID(strings.TrimPrefix(host, hostPrefix)))
			},
			MaxConnsPerHost:     64,
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// forward makes one attempt at the leader. A write that it answers is waited
// for here, so that who wrote reads it (control plane 12.3).
func (s *Store) forward(ctx context.Context, leader uint64, a attempt) (memory.Result, error) {
	s.counts.forwarded.Add(1)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, memberURL(leader, proposeRoute), bytes.NewReader(a.data))
	if err != nil {
		return memory.Result{}, &refusedError{err}
	}
	req.Header.Set("Content-Type", "application/json")
	if a.repeat {
		req.Header.Set(sinceHeader, strconv.FormatUint(a.since, 10))
	}
	resp, err := s.caller.Do(req)
	if err != nil {
		return memory.Result{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxImport))
	if err != nil {
		return memory.Result{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return memory.Result{}, answerError(resp, body)
	}
	var result memory.Result
	if err := json.Unmarshal(body, &result); err != nil {
		return memory.Result{}, fmt.Errorf("read the leader's answer: %w", err)
	}
	if index, err := strconv.ParseUint(resp.Header.Get(indexHeader), 10, 64); err == nil {
		_ = s.machine.applied.wait(ctx, index) // it is written: at the end of the time we answer anyway
	}
	return result, nil
}

func answerError(resp *http.Response, body []byte) error {
	err := fmt.Errorf("leader: %s", strings.TrimSpace(string(body[:min(len(body), 512)])))
	switch {
	case resp.StatusCode == http.StatusGone:
		return errForgotten
	case resp.Header.Get(refuseHeader) != "":
		return &refusedError{err}
	}
	return err
}

// ask reads a JSON answer of another member.
func (s *Store) ask(ctx context.Context, member uint64, route string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.AttemptTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, memberURL(member, route), nil)
	if err != nil {
		return err
	}
	resp, err := s.caller.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(body)))
	}
	return json.Unmarshal(body, answer)
}
