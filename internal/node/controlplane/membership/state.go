package membership

import (
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// registered takes the answer to a registration, which counts as a heartbeat.
func (m *Member) registered(got apiclient.Registered, sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.state
	s.stats.Registrations++
	if s.left {
		return
	}
	if !s.registered && s.stats.Registrations == 1 {
		close(m.joined)
	}
	s.registered, s.incarnation, s.lifecycle = true, got.Node.Status.Incarnation, got.Node.Status.Lifecycle
	s.take(got.HeartbeatIntervalMS, got.ExpiryTimeoutMS, sent)
}

// accepted takes the answer to a heartbeat. It is false where the node is no
// member any more, or something this version does not know: no lease comes with
// that.
func (m *Member) accepted(got apiclient.Heartbeat, sent time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.state
	s.stats.Heartbeats++
	s.lifecycle = got.Lifecycle
	if !got.Lifecycle.Serving() {
		s.registered, s.lease = false, lease{}
		return false
	}
	if !s.left {
		s.take(got.HeartbeatIntervalMS, got.ExpiryTimeoutMS, sent)
	}
	return true
}

func (s *state) take(heartbeatMS, expiryMS uint64, sent time.Time) {
	s.heartbeat = defaultHeartbeat
	if heartbeatMS > 0 {
		s.heartbeat = max(min(millis(heartbeatMS), maxHeartbeat), minHeartbeat)
	}
	s.lease = s.lease.renewed(sent, millis(expiryMS))
}

// millis is a number of milliseconds as a duration; absurd ones are cut.
func millis(ms uint64) time.Duration {
	return time.Duration(min(ms, uint64(24*time.Hour/time.Millisecond))) * time.Millisecond
}

func (m *Member) failed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.stats.Failures++
}

func (m *Member) incarnation() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.incarnation
}

func (m *Member) interval() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.heartbeat
}

func (m *Member) hasLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.left
}

// Joined is closed once the broker was registered.
func (m *Member) Joined() <-chan struct{} { return m.joined }

// Registered says whether the broker is a member now, as far as it knows.
func (m *Member) Registered() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.registered
}

// LeaseValid says whether the broker may serve what only its leader may serve.
func (m *Member) LeaseValid() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.lease.valid(time.Now())
}

// Stats reads the counts.
func (m *Member) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.state.stats
	st.Lifecycle, st.Incarnation = m.state.lifecycle, m.state.incarnation
	return st
}

// Lifecycle is what the control plane last said the node is.
func (m *Member) Lifecycle() model.Lifecycle { return m.Stats().Lifecycle }
