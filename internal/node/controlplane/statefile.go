package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/felixlog/felix/internal/node/controlplane/mirror"
)

// StateFile is the name of the file in which a broker keeps what it knows, in
// the directory of its logs.
const StateFile = "catalog.json"

// stateVersion is the version of the form of the file.
const stateVersion = 1

// maxStateFile bounds the file in bytes.
const maxStateFile = 512 << 20

// A known is what a broker knew, for its next start. It holds public keys and
// no secret.
type known struct {
	NodeID string                     `json:"node_id,omitempty"`
	State  *mirror.State              `json:"state"`
	Peers  []peer                     `json:"peers"`
	Keys   map[string]json.RawMessage `json:"keys"` // tenant to JWK set
}

// A sealed file says of its content whether it is whole.
type sealed struct {
	Version int             `json:"version"`
	SHA256  string          `json:"sha256"` // of Known, in hex
	Known   json.RawMessage `json:"known"`
}

// load reads the file; nil, nil where there is none.
func load(path string) (*known, error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxStateFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxStateFile:
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxStateFile)
	}
	k, err := unseal(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

func unseal(data []byte) (*known, error) {
	var s sealed
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, errors.New("it is damaged: not the JSON that was written")
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("it has version %d, this broker reads %d", s.Version, stateVersion)
	}
	if sum := sha256.Sum256(s.Known); hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, errors.New("it is damaged: the checksum differs")
	}
	k := new(known)
	if err := json.Unmarshal(s.Known, k); err != nil || k.State == nil {
		return nil, errors.New("it is damaged: not the fields that were written")
	}
	return k, nil
}

func seal(k *known) ([]byte, error) {
	body, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	return json.Marshal(sealed{Version: stateVersion, SHA256: hex.EncodeToString(sum[:]), Known: body})
}

// save writes the file at once: after a crash there is the old one or the new.
func save(path string, k *known) error {
	data, err := seal(k)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	out, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // nothing is there once it is renamed
	_, err = out.Write(data)
	if err == nil {
		err = out.Sync()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(out.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
