package memory

import "github.com/felixlog/felix/controlplane/store"

type pauseBody struct {
	Paused bool `json:"paused"`
}

func (s *State) setMovesPaused(b pauseBody) error {
	s.movesPaused = b.Paused
	return nil
}

type holderBody struct {
	Holder string `json:"holder"`
}

// takeLease gives the lease to whoever asks: who may ask is for the backend to
// know. Another holder advances the token, so that a pass of the one before
// ends (control plane 7.7).
func (s *State) takeLease(b holderBody) (store.Lease, error) {
	if s.holder == b.Holder {
		return store.Lease{Held: true}, nil
	}
	s.holder = b.Holder
	s.token++
	return store.Lease{Held: true, TakenOver: true}, nil
}

func (s *State) releaseLease(b holderBody) error {
	if s.holder == b.Holder {
		s.holder = ""
	}
	return nil
}
