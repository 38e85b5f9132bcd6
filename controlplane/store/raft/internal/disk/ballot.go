package disk

import (
	"bytes"
	"errors"

	hraft "github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"
)

var _ hraft.StableStore = (*Store)(nil)

// The library writes a vote in two steps, first the term and then the
// candidate. Were the first durable alone, a member that crashed between them
// would come back with a vote in the new term for whom it chose in an older
// one, and grant it again without comparing logs. So the term waits in memory,
// and both are one write.
var (
	voteTermKey = []byte("LastVoteTerm")
	voteCandKey = []byte("LastVoteCand")
)

// errNotFound has the text that the library looks for.
var errNotFound = errors.New("not found")

// SetUint64 stores a number; the term of a vote waits for its candidate.
func (s *Store) SetUint64(key []byte, val uint64) error {
	if bytes.Equal(key, voteTermKey) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.voteTerm = &val
		return nil
	}
	return s.update(string(key), func(tx *bolt.Tx) error {
		return tx.Bucket(ballotBucket).Put(key, bytesOf(val))
	})
}

// Set stores bytes; the candidate of a vote together with its term.
func (s *Store) Set(key, val []byte) error {
	var term *uint64
	if bytes.Equal(key, voteCandKey) {
		s.mu.Lock()
		term, s.voteTerm = s.voteTerm, nil
		s.mu.Unlock()
	}
	return s.update(string(key), func(tx *bolt.Tx) error {
		b := tx.Bucket(ballotBucket)
		if term != nil {
			if err := b.Put(voteTermKey, bytesOf(*term)); err != nil {
				return err
			}
		}
		return b.Put(key, val)
	})
}

// Get reads what Set stored.
func (s *Store) Get(key []byte) ([]byte, error) {
	var val []byte
	err := s.db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket(ballotBucket).Get(key)
		if v == nil {
			return errNotFound
		}
		val = bytes.Clone(v)
		return nil
	})
	return val, err
}

// GetUint64 reads what SetUint64 stored.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	return number(b), nil
}
