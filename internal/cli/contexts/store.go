package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/felixlog/felix/internal/config/suggest"
	"github.com/felixlog/felix/internal/ownfile"
)

// A Store is a context file on disk.
type Store struct {
	// Path is the file's name. Its directory is made when it is first saved.
	Path string
}

// DefaultPath is felix/config.yaml under the user's configuration directory:
// $XDG_CONFIG_HOME when it is set, else what the operating system names
// (~/.config, ~/Library/Application Support, %AppData%).
func DefaultPath(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "felix", "config.yaml"), nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration directory: %w", err)
	}
	return filepath.Join(dir, "felix", "config.yaml"), nil
}

// maxFileBytes bounds what Load reads.
const maxFileBytes = 1 << 20

// Load reads the file; one that does not exist is empty.
func (s Store) Load() (File, error) {
	f, err := os.Open(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("read contexts: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return File{}, fmt.Errorf("read contexts: %w", err)
	}
	if len(data) > maxFileBytes {
		return File{}, fmt.Errorf("read contexts: %s is larger than %d bytes", s.Path, maxFileBytes)
	}
	parsed, err := parse(data)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", s.Path, err)
	}
	return parsed, nil
}

// Exposed says whether the file can be read by others than its owner. A file
// that does not exist is not exposed.
func (s Store) Exposed() bool {
	info, err := os.Stat(s.Path)
	return err == nil && exposed(info.Mode())
}

// Update loads the file, lets change edit it, and saves it whole with mode
// 0600: a reader sees the old file or the new one. Two updates at once follow
// one another. Nothing is written when change fails.
func (s Store) Update(change func(*File) error) error {
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	unlock, err := Lock(s.Path + ".lock")
	if err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	defer unlock()
	file, err := s.Load()
	if err != nil {
		return err
	}
	if err := change(&file); err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("# Contexts of the felix command line. Rewritten by `felix context` and `felix dev`.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(file); err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	if err := ownfile.Replace(s.Path, out.Bytes()); err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	return nil
}

// parse reads the YAML of a context file and refuses keys it does not know.
func parse(data []byte) (File, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return File{}, err
	}
	if document.Kind == 0 || len(document.Content) == 0 {
		return File{}, nil
	}
	root := document.Content[0]
	if err := checkKeys(root, keysOf(reflect.TypeFor[File]()), ""); err != nil {
		return File{}, err
	}
	known := keysOf(reflect.TypeFor[Connection]())
	for name, node := range pairs(valueOf(root, "contexts")) {
		if err := CheckName(name); err != nil {
			return File{}, fmt.Errorf("line %d: %w", node.Line, err)
		}
		if err := checkKeys(node, known, " in context "+name); err != nil {
			return File{}, err
		}
	}
	var file File
	if err := root.Decode(&file); err != nil {
		return File{}, err
	}
	return file, nil
}

// keysOf lists the YAML keys of a struct type.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		keys = append(keys, key)
	}
	return keys
}

// checkKeys says which key of a mapping is not among known.
func checkKeys(node *yaml.Node, known []string, where string) error {
	if node.Kind != yaml.MappingNode {
		if node.Tag == "!!null" {
			return nil
		}
		return fmt.Errorf("line %d: expected keys and values%s", node.Line, where)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		found := false
		for _, k := range known {
			found = found || k == key.Value
		}
		if found {
			continue
		}
		if near := suggest.Closest(key.Value, known); near != "" {
			return fmt.Errorf("line %d: unknown key %q%s; did you mean %q?", key.Line, key.Value, where, near)
		}
		return fmt.Errorf("line %d: unknown key %q%s; known keys: %s", key.Line, key.Value, where, strings.Join(known, ", "))
	}
	return nil
}

// valueOf is the value of key in a mapping, or nil.
func valueOf(node *yaml.Node, key string) *yaml.Node {
	for name, value := range pairs(node) {
		if name == key {
			return value
		}
	}
	return nil
}

// pairs walks the keys and values of a mapping; other nodes have none.
func pairs(node *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if node == nil || node.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if !yield(node.Content[i].Value, node.Content[i+1]) {
				return
			}
		}
	}
}
