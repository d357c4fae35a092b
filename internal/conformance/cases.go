// Package conformance contains decisions of the reference systems as test cases, and runs them. It is test code: only
// tests import it.
//
// A case is data: an input and the expected result. The suite that runs it also proves that no part of it is ignored:
// it fails if the driver never read a part of the input, or would not notice a change in a part of the expected result.
package conformance

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
)

// The files were written by running the reference systems; see README.md.
var (
	//go:embed cases/karmada.json
	karmada []byte
	//go:embed cases/ocm.json
	ocm []byte
	//go:embed cases/krake_arktos_vmanager.json
	krakeArktosVmanager []byte
)

// The reference systems.
const (
	Karmada  = "karmada"
	OCM      = "ocm"
	Krake    = "krake"
	Arktos   = "arktos"
	Vmanager = "vmanager"
)

// Case is one case of a reference system.
type Case struct {
	ID     string
	System string
	// Group is the kind of case, which determines its fields and what is compared.
	Group string
	// Raw is the whole case, as written.
	Raw json.RawMessage
}

// All reads every case.
func All() ([]Case, error) {
	var out []Case
	for _, file := range []struct {
		system string
		data   []byte
	}{{Karmada, karmada}, {OCM, ocm}, {"", krakeArktosVmanager}} {
		documents, err := documentsOf(file.data)
		if err != nil {
			return nil, err
		}
		for _, raw := range documents {
			var c struct{ ID, Kind, Grp, Sys string }
			if err := json.Unmarshal(raw, &c); err != nil {
				return nil, fmt.Errorf("read a case: %w", err)
			}
			out = append(out, Case{ID: c.ID, System: file.system + c.Sys, Group: c.Kind + c.Grp, Raw: raw})
		}
	}
	return out, nil
}

// documentsOf reads a file of cases, each as written.
func documentsOf(data []byte) ([]json.RawMessage, error) {
	var content struct {
		Schema json.RawMessage   `json:"schema"`
		Count  int               `json:"count"`
		Cases  []json.RawMessage `json:"cases"`
	}
	if err := Decode(data, &content); err != nil {
		return nil, fmt.Errorf("read the cases: %w", err)
	}
	if content.Count != len(content.Cases) {
		return nil, fmt.Errorf("read the cases: there are %d, and the file says %d", len(content.Cases), content.Count)
	}
	return content.Cases, nil
}

// Of reads the cases that a driver runs, by the name of its package.
func Of(driver string) ([]Case, error) {
	cases, err := All()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(cases, func(c Case) bool { return !slices.Contains(c.drivers(), driver) }), nil
}

// drivers returns the packages that run the case: those for its ID, else those for its group.
func (c *Case) drivers() []string {
	if _, out := LeftOut[c.ID]; out {
		return nil
	}
	if names, ok := drivers[c.ID]; ok {
		return names
	}
	return drivers[c.System+"/"+c.Group]
}

// Decode decodes JSON. An unknown field is an error, because it would not be compared.
func Decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into) //nolint:wrapcheck // callers say what was decoded
}
