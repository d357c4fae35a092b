package karmada

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// TestValidate checks that the policies that Karmada rejects are rejected, with the same invalid field.
func TestValidate(t *testing.T) {
	for _, c := range casesOf(t, Validate) {
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
	for _, c := range casesOf(t, Kinds...) {
		if ids[c.ID] != "" || c.Name == "" || c.Source == "" {
			t.Errorf("%s: occurs twice, or has no name or source", c.ID)
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
}

// TestCasesAreValid checks that every case can be translated, and that the resulting objects are valid.
func TestCasesAreValid(t *testing.T) {
	for _, c := range casesOf(t, Kinds...) {
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
			for _, name := range slices.Concat(s.Reschedule, slices.Collect(maps.Keys(s.Health)), slices.Collect(maps.Keys(s.Expect))) {
				if p.workloads[name] == nil {
					t.Errorf("%s, step %d: no workload %s", c.ID, i+1, name)
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
				t.Errorf("%s, step %d: the time is not after the previous step", c.ID, i+1)
			}
		}
		if !slices.ContainsFunc(script.steps, func(s step) bool { return len(s.Expect) > 0 }) {
			t.Errorf("%s: no expectations", c.ID)
		}
	}
}

func casesOf(t *testing.T, kinds ...string) []Case {
	t.Helper()
	cases, err := Cases(kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestEveryCaseIsOfAKind: there is no case that no kind covers.
func TestEveryCaseIsOfAKind(t *testing.T) {
	all, err := written()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if !slices.Contains(Kinds, c.Kind) {
			t.Errorf("%s has the unknown kind %q", c.ID, c.Kind)
		}
	}
}

// TestEveryFieldIsRead checks that changing any field of a case, at any depth, changes the translated input or the
// expectation.
func TestEveryFieldIsRead(t *testing.T) {
	all, err := written()
	if err != nil {
		t.Fatal(err)
	}
	unread, err := conformance.Unread(all, (*Case).content, (*Case).meansTheSame)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range unread {
		t.Errorf("field %s is never read", field)
	}
}

// meansTheSame reports whether changing a field affects neither the input nor the expectation.
func (c *Case) meansTheSame(path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch last := parts[len(parts)-1]; {
	case slices.Contains([]string{"id", "name", "source", "kind"}, parts[0]):
		return true // about the case
	case last == "contains" || parts[0] == "error_contains":
		return true // Karmada's wording
	case last == "timeout_seconds" && c.SuppressDeletion != nil && *c.SuppressDeletion:
		return true // durations do not matter if something else ends the wait
	case last == "replicas" && parts[0] == "workload" && !c.Workload.IsWorkload:
		return true // without replicas, there are none to divide
	case parts[0] == "clusters" && last != "deleting":
		// A cluster that is being deleted is translated as deleted: here, deletion takes no time.
		i, err := strconv.Atoi(parts[1])
		return err == nil && c.Clusters[i].Deleting
	}
	return false
}

// content returns the complete input and expectation of a case, for all steps.
func (c *Case) content() (string, error) {
	if c.Kind == Validate {
		raw, err := c.Document()
		return fmt.Sprint(string(raw), *c.ExpectedValid), err
	}
	script, err := c.course()
	if err != nil {
		return "", err
	}
	var laid []any
	p := newPlayer(&script, nil)
	for i := range script.steps {
		s := &script.steps[i]
		p.change(s)
		for name, want := range s.Expect {
			laid = append(laid, name, want, want.moved, want.gone, want.leaving)
		}
		laid = append(laid, p.now, s.Name)
		for _, o := range p.objects() {
			raw, err := json.Marshal(o) // marshal now, because a later step changes it
			if err != nil {
				return "", err
			}
			laid = append(laid, json.RawMessage(raw))
		}
	}
	raw, err := json.Marshal(laid)
	return string(raw), err
}
