package certificate

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// A record that cannot be read is never replaced: clusters would no longer trust the webhook, and all URLs would
// change.
func TestUnreadableRecordIsKept(t *testing.T) {
	s := &memory{}
	opened(t, s)
	good := s.value
	second := &memory{}
	opened(t, second)
	var other document
	if err := json.Unmarshal(second.value, &other); err != nil {
		t.Fatal(err)
	}
	edit := func(change func(*document)) []byte {
		var d document
		if err := json.Unmarshal(good, &d); err != nil {
			t.Fatal(err)
		}
		change(&d)
		value, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	cases := []struct {
		name, says string
		value      []byte
	}{
		{"not JSON", "not JSON", []byte("{")},
		{"truncated", "not JSON", good[:len(good)/2]},
		{"empty object", "format", []byte("{}")},
		{"newer format", "newer program", edit(func(d *document) { d.Format = 2 })},
		{"no authority", "1 to 8", edit(func(d *document) { d.Authorities = nil })},
		{"too many authorities", "1 to 8", edit(func(d *document) { d.Authorities = slices.Repeat(d.Authorities, 9) })},
		{"not PEM", "PEM", edit(func(d *document) { d.Authorities[0].Certificate = "x" })},
		{"two certificates in one", "PEM", edit(func(d *document) { d.Authorities[0].Certificate += other.Authorities[0].Certificate })},
		{"other private key", "sealed", edit(func(d *document) { d.Authorities[0].PrivateKey = other.Authorities[0].PrivateKey })},
		{"other certificate", "sealed", edit(func(d *document) { d.Authorities[0].Certificate = other.Authorities[0].Certificate })},
		{"secret in place of the key", "sealed", edit(func(d *document) { d.Authorities[0].PrivateKey = d.Secret })},
		{"no secret", "format is not known", edit(func(d *document) { d.Secret = "" })},
		{"short secret", "hexadecimal", edit(func(d *document) { d.Secret = newSealer(t, 1).Seal(recordKey, secretField, "ab") })},
		{"wrong order", "before", edit(func(d *document) {
			d.Authorities = append(d.Authorities, d.Authorities[0])
			d.Authorities[1].SignsFrom = d.Authorities[0].SignsFrom.Add(-time.Second)
		})},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			broken := &memory{value: c.value, revision: 7}
			a, err := New(Options{Store: broken, Sealer: newSealer(t, 1), Hosts: []string{"127.0.0.1"}})
			if err != nil {
				t.Fatal(err)
			}
			err = a.Open(t.Context())
			if err == nil {
				t.Fatal("the document was accepted")
			}
			for _, part := range []string{c.says, "restore a backup", "webhook_authority"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if broken.commits > 0 || !bytes.Equal(broken.value, c.value) {
				t.Error("the record was modified")
			}
		})
	}
}

func TestDifferentKeyFileIsReported(t *testing.T) {
	s := &memory{}
	opened(t, s)
	a, err := New(Options{Store: s, Sealer: newSealer(t, 2), Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	err = a.Open(t.Context())
	if !errors.Is(err, store.ErrWrongKey) || !strings.Contains(err.Error(), "start with the key file it was sealed with") {
		t.Errorf("error %v does not say that the key file is a different one", err)
	}
	if s.commits != 1 {
		t.Error("the record was modified")
	}
}

// FuzzDecode checks that no record makes decoding panic.
func FuzzDecode(f *testing.F) {
	s := &memory{}
	opened(f, s)
	f.Add(s.value)
	f.Add([]byte(`{"format":1,"secret":"v1.x.y","authorities":[{}]}`))
	sealer := newSealer(f, 1)
	f.Fuzz(func(t *testing.T, value []byte) {
		ring, err := decode(value, sealer)
		if err == nil && (len(ring.authorities) == 0 || ring.authorities[0].key == nil) {
			t.Error("a document without an authority or key was accepted")
		}
	})
}
