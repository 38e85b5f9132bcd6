package kvlog

import (
	"github.com/felixlog/felix/storage/shardlog"
)

// A ChangePage is a run of changes read from the log. They are valid until
// Release.
type ChangePage struct {
	Changes []Change
	// Next is where to go on: behind the last record read. It equals the
	// offset asked for when there is nothing more.
	Next uint64
	page *shardlog.Page
}

// Release gives the page's memory back.
func (p *ChangePage) Release() {
	if p.page != nil {
		p.page.Release()
		p.page, p.Changes = nil, nil
	}
}

// Changes reads the changes from offset from up to the tail, in order, about
// maxBytes of log at a time; what compaction copied is left out. A page without
// changes whose Next has moved is not the end. Errors: *shardlog.TrimmedError
// below Base (take a [Map.Range] and say so), *[CorruptionError], or what reading
// the log answered.
func (m *Map) Changes(from uint64, maxBytes int) (*ChangePage, error) {
	page, err := m.core.log.Read(from, maxBytes, replayRecords)
	if err != nil {
		return nil, err
	}
	p := &ChangePage{Next: max(from, page.Next), page: page}
	err = eachRecord(page, from, p.Next, func(rec []byte, offset uint64, _ shardlog.Location) error {
		r, err := ParseCacheRecord(rec)
		if err != nil {
			return &CorruptionError{offset, err.Error()}
		}
		if !r.Carried {
			p.Changes = append(p.Changes, changeOf(&r, offset))
		}
		return nil
	})
	if err != nil {
		p.Release()
		return nil, err
	}
	return p, nil
}
