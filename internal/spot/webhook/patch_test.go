package webhook

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// TestPatch patches documents with and without the map or list. Slashes and tildes in keys do not separate the path.
func TestPatch(t *testing.T) {
	for _, test := range []struct{ name, document, want string }{
		{"exists", `{"map":{"a":"b","x~1y/z":"old"},"list":[1]}`, `{"list":[1,2],"map":{"a":"b","x~1y/z":"new"}}`},
		{"missing", `{}`, `{"list":[2],"map":{"x~1y/z":"new"}}`},
		{"null", `{"map":null,"list":null}`, `{"list":[2],"map":{"x~1y/z":"new"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p patch
			p.addEntries("/none", false)
			p.addEntries("/map", test.name == "exists", entry{"x~1y/z", "new"})
			p.addElement("/list", test.name == "exists", 2)
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := jsonpatch.DecodePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decoded.Apply([]byte(test.document)); err != nil || string(got) != test.want {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}
