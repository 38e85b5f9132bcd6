package recovery

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// readSideFiles reads what lies beside the segments. A file that says what was
// promised must decode where it exists; one that can be done without is done
// without, with a warning.
func (p *planner) readSideFiles() error {
	plan := p.plan
	found, err := readSide(p, segment.MarkFile, segment.ParseMark, &plan.Mark)
	if err := p.derived(segment.MarkFile, err, "what is durable is not known, and damage is judged strictly"); err != nil {
		return err
	}
	plan.HasMark = found && err == nil

	_, err = readSide(p, segment.EpochsFile, segment.ParseGenerations, &plan.Generations)
	if err := p.derived(segment.EpochsFile, err, "the history of generations starts empty"); err != nil {
		return err
	}
	if _, err := readSide(p, segment.ReplicaFile, segment.ParseReplica, &plan.Replica); err != nil {
		return err
	}
	if _, err := readSide(p, segment.BallotFile, segment.ParseBallot, &plan.Ballot); err != nil {
		return err
	}
	plan.HasIdentity, err = readSide(p, segment.IdentityFile, segment.ParseIdentity, &plan.Identity)
	return err
}

// derived turns the damage of a file that can be done without into a warning.
func (p *planner) derived(name string, err error, meaning string) error {
	if damage, ok := errors.AsType[*segment.CorruptionError](err); ok {
		p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf("%s is damaged (%s): %s", name, damage.Kind, meaning))
		return nil
	}
	return err
}

// readSide decodes a side file into out. It reports whether there is one. A
// file that does not decode is a *segment.CorruptionError.
func readSide[T any](p *planner, name string, parse func([]byte) (T, error), out *T) (bool, error) {
	path := filepath.Join(p.dir, name)
	data, err := fs.ReadFile(p.fs, path, segment.MaxSideFile)
	switch tooLarge, isTooLarge := errors.AsType[*fs.TooLargeError](err); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case isTooLarge:
		return true, &segment.CorruptionError{Kind: segment.SideFileLength, Path: path, Err: tooLarge}
	case err != nil:
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	value, err := parse(data)
	if err != nil {
		return true, corruption(err).At(path, 0, 0)
	}
	*out = value
	return true, nil
}
