package webhook

import "strings"

// patch is a JSON patch (RFC 6902).
type patch []operation

// operation is one change. Adding an existing member replaces it.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// add adds a value at a path.
func (p *patch) add(path string, value any) {
	*p = append(*p, operation{"add", path, value})
}

// addEntries adds entries to a map, which may not exist yet.
func (p *patch) addEntries(path string, exists bool, entries ...entry) {
	if len(entries) == 0 {
		return
	}
	if exists {
		for _, e := range entries {
			p.add(path+"/"+escape(e.key), e.value)
		}
		return
	}
	values := make(map[string]string, len(entries))
	for _, e := range entries {
		values[e.key] = e.value
	}
	p.add(path, values)
}

// addElement appends an element to a list, which may not exist yet.
func (p *patch) addElement(path string, exists bool, value any) {
	if exists {
		p.add(path+"/-", value)
		return
	}
	p.add(path, []any{value})
}

// entry is one label or annotation.
type entry struct{ key, value string }

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// escape escapes a key for a path.
func escape(key string) string { return escaper.Replace(key) }
