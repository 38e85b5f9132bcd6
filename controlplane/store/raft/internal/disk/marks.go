package disk

import (
	"bytes"

	bolt "go.etcd.io/bbolt"
)

var (
	commitKey   = []byte("commit")
	clusterKey  = []byte("cluster")
	nodeKey     = []byte("node")
	withheldKey = []byte("withheld")
	snapshotKey = []byte("snapshot")
)

// Marks are what a member keeps about itself.
type Marks struct {
	ClusterID string
	NodeID    uint64 // 0: nothing was marked yet
	// Withheld says that the member may not vote: it lacks, or may lack, what it
	// acknowledged before its disk was lost (control plane 12.5).
	Withheld bool
	// Snapshot is the index of the newest snapshot that was completed.
	Snapshot uint64
}

// Marks reads them.
func (s *Store) Marks() (Marks, error) {
	var m Marks
	err := s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(marksBucket)
		m = Marks{
			ClusterID: string(bytes.Clone(b.Get(clusterKey))),
			NodeID:    number(b.Get(nodeKey)),
			Withheld:  number(b.Get(withheldKey)) != 0,
			Snapshot:  number(b.Get(snapshotKey)),
		}
		return nil
	})
	return m, err
}

// Mark writes whose file it is and whether its vote is withheld, in one write.
func (s *Store) Mark(cluster string, node uint64, withheld bool) error {
	return s.update("marks", func(tx *bolt.Tx) error {
		b := tx.Bucket(marksBucket)
		if err := b.Put(clusterKey, []byte(cluster)); err != nil {
			return err
		}
		if err := b.Put(nodeKey, bytesOf(node)); err != nil {
			return err
		}
		var w uint64
		if withheld {
			w = 1
		}
		return b.Put(withheldKey, bytesOf(w))
	})
}

// MarkSnapshot remembers that a snapshot is complete.
func (s *Store) MarkSnapshot(index uint64) error {
	return s.update("snapshot mark", func(tx *bolt.Tx) error {
		b := tx.Bucket(marksBucket)
		return b.Put(snapshotKey, bytesOf(max(index, number(b.Get(snapshotKey)))))
	})
}
