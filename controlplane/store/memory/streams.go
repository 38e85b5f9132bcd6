package memory

import (
	"reflect"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func (s *State) createStream(r model.Stream) error {
	if err := s.within(model.NamespaceKey{TenantID: r.TenantID, Namespace: r.Namespace}); err != nil {
		return err
	}
	if s.streams.has(r.Key()) {
		return store.Conflict(store.Exists, "stream already exists")
	}
	s.addStream(&r)
	return nil
}

func (s *State) addStream(r *model.Stream) {
	s.streams.put(r)
	s.streamFeed.add(func(seq uint64) model.StreamChange {
		return model.StreamChange{Seq: seq, Op: model.Created, Key: r.Key(), Stream: r}
	})
}

type streamPatch struct {
	Key   model.StreamKey   `json:"key"`
	Patch model.StreamPatch `json:"patch"`
}

// patchStream publishes nothing where nothing changes.
func (s *State) patchStream(b streamPatch) (model.Stream, error) {
	old, ok := s.streams.get(b.Key)
	if !ok {
		return model.Stream{}, missing("stream")
	}
	r := store.PatchedStream(*old, b.Patch)
	if !reflect.DeepEqual(r, *old) {
		s.streams.put(&r)
		s.streamFeed.add(func(seq uint64) model.StreamChange {
			return model.StreamChange{Seq: seq, Op: model.Updated, Key: b.Key, Stream: &r}
		})
	}
	return r, nil
}

func (s *State) deleteStream(k model.StreamKey) error {
	gone, ok := s.streams.get(k)
	if !ok {
		return missing("stream")
	}
	s.disown(ofStream(k))
	s.streams.remove(k)
	s.streamDeleted(gone)
	return nil
}

// streamDeleted publishes the end of a stream.
func (s *State) streamDeleted(r *model.Stream) {
	t := model.Tombstone{
		Kind: model.StreamShard, TenantID: r.TenantID, Namespace: r.Namespace, Name: r.Stream,
		UID: r.UID, DeletedAtMillis: s.now,
	}
	s.streamTombs.add(t)
	s.streamFeed.add(func(seq uint64) model.StreamChange {
		return model.StreamChange{Seq: seq, Op: model.Deleted, Key: r.Key(), Tombstone: &t}
	})
}
