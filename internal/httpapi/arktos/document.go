package arktos

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// members are the fields of a JSON object by their folded names.
type members map[string]jsontext.Value

// membersOf decodes a document, which must be a JSON object.
func membersOf(data []byte) (members, error) {
	var raw map[string]jsontext.Value
	if trimmed := bytes.TrimSpace(data); !bytes.HasPrefix(trimmed, []byte("{")) {
		return nil, errors.New("the body must be a JSON object")
	}
	if err := api.DecodeAnyCase(data, &raw, false); err != nil {
		return nil, err
	}
	out := make(members, len(raw))
	for name, value := range raw {
		if _, twice := out[fold(name)]; twice {
			return nil, api.FieldErrors{{Field: name, Message: "is given twice, in different spellings"}}
		}
		out[fold(name)] = value
	}
	return out, nil
}

// fold normalizes a name: names match in any case, with or without dashes and underscores.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// unwrap returns the object under the first of the names that the document has, or the document
// itself.
func unwrap(data []byte, wrappers ...string) ([]byte, error) {
	all, err := membersOf(data)
	if err != nil {
		return nil, err
	}
	for _, name := range wrappers {
		if inner, ok := all[name]; ok && inner.Kind() == '{' {
			return inner, nil
		}
	}
	return data, nil
}

// decode decodes a document strictly: an unknown field is an error, because it would otherwise be
// ignored silently.
func decode(data []byte, into any) error { return api.DecodeAnyCase(data, into, true) }

// decodeLoosely ignores unknown fields: documents of other systems contain much that is not needed.
func decodeLoosely(data []byte, into any) error { return api.DecodeAnyCase(data, into, false) }

// texts is a list of strings that may also be written as a single string.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(data []byte) error {
	*t = nil
	if bytes.HasPrefix(data, []byte(`"`)) {
		*t = make(texts, 1)
		return json.Unmarshal(data, &(*t)[0])
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// flavorName is the name of a flavor, written as a string or as an object with its flavor_id. Other
// fields of the object, such as a spot price, are ignored.
type flavorName string

// UnmarshalJSON implements json.Unmarshaler.
func (f *flavorName) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, (*string)(f))
	}
	var object struct{ FlavorID string }
	if err := json.Unmarshal(data, &object, json.MatchCaseInsensitiveNames(true)); err != nil {
		return err
	}
	*f = flavorName(object.FlavorID)
	return nil
}

func flavorNames(flavors []flavorName) []string {
	var out []string
	for _, f := range flavors {
		out = append(out, string(f))
	}
	return out
}
