package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/journal"
	"github.com/felixlog/felix/storage/recovery"
	"github.com/felixlog/felix/storage/segment"
)

// InspectOptions say which shards are inspected, and how they are judged.
type InspectOptions struct {
	recovery.Options
	// Spaces are those to look at, nil for all.
	Spaces []Space
	// Shard is the one shard to look at, nil for all. It is looked for in each
	// of the spaces.
	Shard *Key
}

// A ShardReport is what opening a shard would do.
type ShardReport struct {
	// Kind is what the shard holds: stream, cache, counters, groups or
	// dead-letters.
	Kind string `json:"kind"`
	// Label is whose log it is, "" where its identity is missing or damaged.
	Label string `json:"shard"`
	// UID is the creation of the stream or cache it belongs to, "" where nothing
	// says so.
	UID string `json:"uid,omitempty"`
	recovery.Report
}

// shardDirName is what DirName makes.
var shardDirName = regexp.MustCompile(`_[0-9]+-[0-9a-f]{16}$`)

// InspectDir judges every shard under the root of a store, or the one shard
// whose directory root is, and calls visit with each, in the order of their
// directories. Shards are judged as they will be once the commit journal has
// been applied; one that is damaged is reported, too, and left out of account.
// It changes nothing and takes no lock: of a store in use it tells how it is at
// this moment, unfinished writes included. A shard that cannot be read is
// reported as refused. An error of visit ends it.
func InspectDir(f fs.FS, root string, o InspectOptions, visit func(ShardReport) error) error {
	names, err := f.List(root)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	f, err = withJournal(f, rootOf(f, root, isShard(names)), visit)
	if err != nil {
		return err
	}
	if isShard(names) {
		return inspectOne(f, root, nil, o, visit)
	}
	spaces := o.Spaces
	if spaces == nil {
		spaces = Spaces()
	}
	for _, space := range spaces {
		names, err := f.List(filepath.Join(root, string(space)))
		if errors.Is(err, fs.ErrNotExist) && space != Streams {
			continue
		}
		if err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
		slices.Sort(names)
		for _, name := range names {
			if !shardDirName.MatchString(name) || o.Shard != nil && name != DirName(*o.Shard) {
				continue
			}
			if err := inspectOne(f, filepath.Join(root, string(space), name), &space, o, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// rootOf is the root of the store that dir is, or that has the shard whose
// directory it is.
func rootOf(f fs.FS, dir string, isShard bool) string {
	if !isShard {
		return dir
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if _, err := f.Stat(journal.Dir(parent)); err != nil {
		return filepath.Dir(parent)
	}
	return parent
}

// withJournal is f as it will be with the commit journal of a store applied.
func withJournal(f fs.FS, root string, visit func(ShardReport) error) (fs.FS, error) {
	view, err := journal.NewView(f, root)
	if err == nil {
		return view, nil
	}
	report := ShardReport{Kind: "commit journal", Report: recovery.Report{
		Dir: journal.Dir(root), Verdict: recovery.Refuse, Error: err.Error(), Segments: []recovery.SegmentReport{},
	}}
	if damage, ok := errors.AsType[*journal.DamagedError](err); ok {
		report.File, report.Position = damage.Path, &damage.Position
	}
	return f, visit(report)
}

// isShard reports whether these are the files of a shard.
func isShard(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, isSegment := segment.ParseFileName(name)
		return isSegment || name == segment.IdentityFile
	})
}

// inspectOne judges the shard in dir, which lies in the directory of a space;
// nil where that is not known.
func inspectOne(f fs.FS, dir string, space *Space, o InspectOptions, visit func(ShardReport) error) error {
	plan, err := recovery.Inspect(f, dir, o.Options)
	if err != nil {
		return visit(ShardReport{Kind: kindOf(space, nil), Report: recovery.Report{
			Dir: dir, Verdict: recovery.Refuse, Error: err.Error(), Segments: []recovery.SegmentReport{},
		}})
	}
	out := ShardReport{Kind: kindOf(space, plan), Report: plan.Report(dir)}
	if view, ok := f.(*journal.View); ok && view.Missing(dir) > 0 && out.Verdict != recovery.Refuse {
		out.Verdict = recovery.Repair
		out.Steps = append([]string{fmt.Sprintf("write %d bytes that only the commit journal has", view.Missing(dir))}, out.Steps...)
	}
	if plan.HasIdentity {
		id := keyOf(plan.Identity)
		out.Label = id.key.String()
		if space != nil && (id.space != *space || DirName(id.key) != filepath.Base(dir)) {
			out.Verdict, out.Steps, out.CutBytes = recovery.Refuse, nil, 0
			out.Corruption, out.File = "another shard's", filepath.Join(dir, segment.IdentityFile)
			out.Error = fmt.Sprintf("the directory holds the log of %s", id)
		}
	}
	out.readUID(f, dir)
	return visit(out)
}

// readUID adds to which creation of its name the shard belongs. A mark that is
// damaged has the log refused where its uid is known.
func (r *ShardReport) readUID(f fs.FS, dir string) {
	uid, _, err := readUID(f, dir)
	if r.UID = uid; err == nil || r.Verdict == recovery.Refuse {
		return
	}
	r.Verdict, r.Steps, r.CutBytes, r.Error = recovery.Refuse, nil, 0, err.Error()
	if damage, ok := errors.AsType[*segment.CorruptionError](err); ok {
		r.Corruption, r.File = damage.Kind.String(), damage.Path
	}
}

func kindOf(space *Space, plan *recovery.Plan) string {
	switch {
	case space != nil:
		return space.Kind()
	case plan != nil && plan.HasIdentity:
		return Space(plan.Identity.Space).Kind()
	}
	return "unknown"
}
