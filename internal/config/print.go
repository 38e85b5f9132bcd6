package config

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes c as a YAML file that loads to the same configuration, with a
// comment before each group. Secrets are left out; a comment says so.
func Print(w io.Writer, c *Config) error {
	return printGroups(w, c.groups())
}

func printGroups(w io.Writer, groups []group) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, g := range groups {
		comment := g.title
		var first *yaml.Node
		for _, s := range g.settings {
			if s.Secret {
				if s.Text() != "" {
					comment += "\n" + s.Key + ": set, not shown"
				}
				continue
			}
			key := &yaml.Node{Kind: yaml.ScalarNode, Value: s.Key}
			if first == nil {
				first = key
			}
			value := &yaml.Node{}
			value.SetString(s.Text())
			if _, isNumber := s.value.(number); isNumber || s.IsBool() {
				value = &yaml.Node{Kind: yaml.ScalarNode, Value: s.Text()}
			}
			root.Content = append(root.Content, key, value)
		}
		if first != nil {
			first.HeadComment = comment
		}
	}
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
