package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/felixlog/felix/internal/config/suggest"
)

// maxFile bounds a configuration file in bytes.
const maxFile = 1 << 20

// yaml applies a file: a mapping of keys to plain values.
func (l *loader) yaml(path string, data []byte) {
	if len(data) > maxFile {
		l.fault(fmt.Errorf("%s is %d bytes long, at most %d are allowed", path, len(data), maxFile))
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return // an empty file sets nothing
	case err != nil:
		l.fault(fmt.Errorf("%s: %w", path, err))
		return
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		l.fault(fmt.Errorf("%s: more than one YAML document", path))
		return
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return
	}
	if root.Kind != yaml.MappingNode {
		l.fault(fmt.Errorf("%s:%d: want a mapping of keys to values", path, root.Line))
		return
	}
	l.mapping(path, "", root, make(map[string]int))
}

// mapping applies the values of one mapping. Where the dialect nests, a mapping
// below it holds settings whose keys begin with its name and a dot.
func (l *loader) mapping(path, prefix string, m *yaml.Node, seen map[string]int) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		name, at := prefix+key.Value, fmt.Sprintf("%s:%d", path, key.Line)
		if l.nests && value.Kind == yaml.MappingNode && l.byKey[name] == nil && len(name) <= maxKey {
			l.mapping(path, name+".", value, seen)
			continue
		}
		if line, twice := seen[name]; twice {
			l.fault(fmt.Errorf("%s: %s is already set in line %d", at, name, line))
			continue
		}
		seen[name] = key.Line
		l.yamlValue(name, value, at)
	}
}

// maxKey bounds a key with all it is nested in, and so the nesting.
const maxKey = 256

func (l *loader) yamlValue(key string, value *yaml.Node, at string) {
	s := l.byKey[key]
	if s == nil {
		if old := l.inertByKey(key); old != nil {
			l.warn("%s: %s has no effect: %s", at, key, old.why)
			return
		}
		l.fault(&UnknownError{Name: key, Source: at, Like: suggest.Closest(key, sortedKeys(l.byKey))})
		return
	}
	if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
		l.fault(fmt.Errorf("%s: %s needs a plain value: %s", at, key, s.Allowed()))
		return
	}
	l.set(s, value.Value, at)
}
