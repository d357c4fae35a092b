package webhook

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// TestPatch adds to documents that have the map or list, and to those that do not.
// Slashes and tildes of keys are not taken for parts of the path.
func TestPatch(t *testing.T) {
	for _, test := range []struct{ name, document, want string }{
		{"there", `{"map":{"a":"b","x~1y/z":"old"},"list":[1]}`, `{"list":[1,2],"map":{"a":"b","x~1y/z":"new"}}`},
		{"not there", `{}`, `{"list":[2],"map":{"x~1y/z":"new"}}`},
		{"null", `{"map":null,"list":null}`, `{"list":[2],"map":{"x~1y/z":"new"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p patch
			p.addEntries("/none", false)
			p.addEntries("/map", test.name == "there", entry{"x~1y/z", "new"})
			p.addElement("/list", test.name == "there", 2)
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
