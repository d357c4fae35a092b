package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// toYAML converts a JSON document. Text that a terminal could interpret is escaped, which YAML only
// does in double quotes.
func toYAML(document []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	var raw, out bytes.Buffer
	encoder := yaml.NewEncoder(&raw)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(yamlNode(value)); err != nil {
		return nil, err
	}
	for _, r := range raw.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		default: // in double quotes, see yamlNode
			fmt.Fprintf(&out, `\U%08X`, r)
		}
	}
	return out.Bytes(), nil
}

func yamlNode(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, yamlNode(key), yamlNode(v[key]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			node.Content = append(node.Content, yamlNode(item))
		}
		return node
	case string:
		node := &yaml.Node{}
		if err := node.Encode(v); err != nil || node.ShortTag() != "!!str" { // quoted where YAML 1.1 reads something else, as in "no"
			node = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Style: yaml.DoubleQuotedStyle}
		}
		if strings.ContainsFunc(v, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	default: // a number or a truth value
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
}
