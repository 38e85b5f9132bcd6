package store

import "github.com/felixlog/felix/controlplane/model"

// PatchedStream is a stream with what a patch changes of it.
func PatchedStream(s model.Stream, p model.StreamPatch) model.Stream {
	if p.Retention != nil {
		s.Retention = *p.Retention
	}
	if p.Consistency != nil {
		s.Consistency = *p.Consistency
	}
	if p.Delivery != nil {
		s.Delivery = *p.Delivery
	}
	if p.Durable != nil {
		s.Durable = *p.Durable
	}
	return s
}
