package karmadatest

import (
	"errors"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestValidate: the policies that Karmada refuses are refused, at the field that
// is wrong.
func TestValidate(t *testing.T) {
	for _, c := range read(t, Validate) {
		raw, err := c.Document()
		if err != nil {
			t.Fatal(err)
		}
		object, err := api.Decode(raw)
		var refused api.FieldErrors
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		for _, wrong := range c.CompareRefusal(refused.And(object.Validate())) {
			t.Errorf("%s (%s): %s", c.ID, c.Name, wrong)
		}
	}
}

// TestTablesAreAboutCases: what is meant to differ, to be refused or to be left
// out is about cases that there are, and says why.
func TestTablesAreAboutCases(t *testing.T) {
	ids := map[string]string{}
	for _, c := range read(t, append([]string{EstimateModel}, Kinds...)...) {
		if ids[c.ID] != "" || c.Name == "" || c.Source == "" {
			t.Errorf("%s: is there twice, or says too little about itself", c.ID)
		}
		ids[c.ID] = c.Kind
	}
	for id, d := range Differences {
		if ids[id] == "" || ids[id] == Course || d.Reason == "" {
			t.Errorf("difference %s: no such case, or no reason", id)
		}
	}
	for id := range Refusals {
		if ids[id] != Validate {
			t.Errorf("refusal %s: no such case", id)
		}
	}
	for id, kind := range ids {
		if (kind == EstimateModel) != (Inexpressible[id] != "") {
			t.Errorf("%s: of kind %s", id, kind)
		}
	}
}

// TestCasesAreValid: every case can be translated, and what it is translated into
// is accepted.
func TestCasesAreValid(t *testing.T) {
	for _, c := range read(t, Kinds...) {
		if c.Kind == Validate {
			continue
		}
		script, err := c.course()
		if err != nil {
			t.Error(err)
			continue
		}
		p := newPlayer(&script, nil)
		for i := range script.steps {
			s := &script.steps[i]
			p.change(s)
			for _, o := range p.objects() {
				if errs := o.Validate(); errs != nil {
					t.Errorf("%s, step %d: %s: %s", c.ID, i+1, api.KeyOf(o), errs)
				}
			}
			for name, want := range s.Expect {
				for cluster := range want.Clusters {
					if p.clusters[cluster] == nil {
						t.Errorf("%s, step %d: %s is expected on %s, which does not exist", c.ID, i+1, name, cluster)
					}
				}
			}
			if i > 0 && s.After <= script.steps[i-1].After {
				t.Errorf("%s, step %d: is not after the one before", c.ID, i+1)
			}
		}
		if !slices.ContainsFunc(script.steps, func(s step) bool { return len(s.Expect) > 0 }) {
			t.Errorf("%s: expects nothing", c.ID)
		}
	}
}

func read(t *testing.T, kinds ...string) []Case {
	t.Helper()
	cases, err := Cases(kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}
