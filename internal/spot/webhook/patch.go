package webhook

import "strings"

// patch is a JSON patch (RFC 6902): changes of a document, in order.
type patch []operation

// operation is one change. Adding a member that exists replaces it.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// add puts a value at a path.
func (p *patch) add(path string, value any) {
	*p = append(*p, operation{"add", path, value})
}

// addEntries puts entries into a map, which the document may not have yet.
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

// addElement puts an element at the end of a list, which the document may not have
// yet.
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

// escape writes a key as a part of a path.
func escape(key string) string { return escaper.Replace(key) }
