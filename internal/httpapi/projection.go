package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
)

// projection selects fields of objects by their JSON names. A nil projection selects everything, in a
// whole object as below a name.
type projection map[string]projection

// parseProjection reads "metadata.name,status.state" for the objects of a kind.
func parseProjection(text string, info api.KindInfo) (projection, error) {
	if text == "" {
		return nil, nil
	}
	p := projection{}
	for path := range strings.SplitSeq(text, ",") {
		names := strings.Split(strings.TrimSpace(path), ".")
		if !hasField(reflect.TypeOf(info.New()), names) {
			return nil, problem.Invalid("fields", "%q is not a field of a %s: write the names that its JSON has, such as metadata.name", path, info.Kind)
		}
		p.add(names)
	}
	return p, nil
}

// hasField reports whether a type has nested fields of these names. Elements of lists count as their
// list, and what is in maps is not a field.
func hasField(t reflect.Type, names []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if len(names) == 0 {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	return slices.ContainsFunc(api.Fields(t), func(f api.Field) bool { return f.Name == names[0] && hasField(f.Type, names[1:]) })
}

// add selects one more field.
func (p projection) add(names []string) {
	below, known := p[names[0]]
	switch {
	case len(names) == 1:
		p[names[0]] = nil
	case known && below == nil: // everything is selected already
	default:
		if below == nil {
			below = projection{}
			p[names[0]] = below
		}
		below.add(names[1:])
	}
}

// write appends the selected fields of an object to a buffer.
func (p projection) write(into *bytes.Buffer, object api.Object) error {
	if p == nil {
		return jsonform.Write(into, object)
	}
	whole, err := jsonform.Marshal(object)
	if err != nil {
		return err
	}
	p.copy(into, whole)
	return nil
}

// list returns a page of the store as write does for its objects.
func (p projection) list(page *api.List[api.Object]) (any, error) {
	if p == nil {
		return page, nil
	}
	items := make([]json.RawMessage, len(page.Items))
	for i, object := range page.Items {
		var text bytes.Buffer
		if err := p.write(&text, object); err != nil {
			return nil, err
		}
		items[i] = text.Bytes()
	}
	return &struct {
		Items           []json.RawMessage   `json:"items"`
		Continue        string              `json:"continue,omitempty"`
		ResourceVersion string              `json:"resource_version"`
		Damaged         []api.DamagedObject `json:"damaged,omitempty"`
	}{items, page.Continue, page.ResourceVersion, page.Damaged}, nil
}

// copy appends the selected part of the JSON value at the beginning of a text, and returns what
// follows on the value. The text is the output of jsonform: valid, and without spaces.
func (p projection) copy(into *bytes.Buffer, text []byte) []byte {
	switch {
	case p != nil && text[0] == '{':
		return p.copyObject(into, text)
	case p != nil && text[0] == '[':
		return p.copyList(into, text)
	}
	rest := afterValue(text)
	into.Write(text[:len(text)-len(rest)])
	return rest
}

func (p projection) copyObject(into *bytes.Buffer, text []byte) []byte {
	into.WriteByte('{')
	first := true
	for text = text[1:]; text[0] != '}'; {
		if text[0] == ',' {
			text = text[1:]
		}
		value := afterString(text)
		name := text[:len(text)-len(value)]
		value = value[1:] // the colon
		below, selected := p[string(name[1:len(name)-1])]
		if !selected {
			text = afterValue(value)
			continue
		}
		if !first {
			into.WriteByte(',')
		}
		first = false
		into.Write(name)
		into.WriteByte(':')
		text = below.copy(into, value)
	}
	into.WriteByte('}')
	return text[1:]
}

func (p projection) copyList(into *bytes.Buffer, text []byte) []byte {
	into.WriteByte('[')
	for text = text[1:]; text[0] != ']'; {
		if text[0] == ',' {
			into.WriteByte(',')
			text = text[1:]
		}
		text = p.copy(into, text)
	}
	into.WriteByte(']')
	return text[1:]
}

// afterValue returns what follows on the JSON value at the beginning of a text.
func afterValue(text []byte) []byte {
	depth := 0
	for len(text) > 0 {
		switch text[0] {
		case '"':
			text = afterString(text)
			if depth == 0 {
				return text
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what a number or a word is in
				return text
			}
			if depth--; depth == 0 {
				return text[1:]
			}
		case ',':
			if depth == 0 {
				return text
			}
		}
		text = text[1:]
	}
	return text
}

// afterString returns what follows on the JSON string at the beginning of a text.
func afterString(text []byte) []byte {
	for text = text[1:]; ; {
		end := bytes.IndexByte(text, '"')
		escapes := 0
		for escapes < end && text[end-1-escapes] == '\\' {
			escapes++
		}
		text = text[end+1:]
		if escapes%2 == 0 {
			return text
		}
	}
}
