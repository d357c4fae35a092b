package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance/ocm"
)

// TestOCM runs the cases of Open Cluster Management on a server, as simulations.
func TestOCM(t *testing.T) {
	cases, err := ocm.Cases(ocm.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, testConfig(t.TempDir()))
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			for _, wrong := range c.Compare(simulateOCM(t, s, &c)) {
				t.Errorf("%s: %s", c.Name, wrong)
			}
		})
	}
}

func simulateOCM(t *testing.T, s *runningServer, c *ocm.Case) *ocm.Answer {
	t.Helper()
	request := api.Simulation{Base: "empty", Now: &c.Now}
	given := c.World()
	for _, object := range given.Objects() {
		request.Objects = append(request.Objects, json.RawMessage(toJSON(t, object)))
	}
	result, err := s.client.Simulate(t.Context(), request)
	var refused *api.Problem
	if errors.As(err, &refused) && refused.Status == http.StatusUnprocessableEntity {
		return &ocm.Answer{Refused: refused.Errors}
	}
	if err != nil {
		t.Fatal(err)
	}
	answer := &ocm.Answer{}
	for _, object := range result.Objects {
		if p, ok := object.(*api.Placement); ok && api.KeyOf(p) == api.KeyOf(given.Placement) {
			answer.Status = p.Status
		}
	}
	for i, e := range result.Explanations {
		if e.Namespace == given.Placement.Metadata.Namespace && e.Name == given.Placement.Metadata.Name {
			answer.Explanation = &result.Explanations[i]
		}
	}
	if answer.Explanation == nil {
		t.Fatalf("no explanation of %s", api.KeyOf(given.Placement))
	}
	// The others are only counted.
	for _, change := range result.Changes {
		if change.Key != api.KeyOf(given.Placement) {
			t.Errorf("%s changed, too: %s", change.Key, strings.Join(change.To, ", "))
		}
	}
	return answer
}

// TestOCMEnqueues checks that exactly the decisions that a change affects are made again.
func TestOCMEnqueues(t *testing.T) {
	cases, err := ocm.Cases(ocm.Enqueue)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			change, err := c.Change()
			if err != nil {
				t.Fatal(err)
			}
			s := start(t, testConfig(t.TempDir()))
			for _, object := range change.Before {
				put(s, object)
			}
			decisions := func() map[string]string {
				out := map[string]string{}
				for _, object := range change.Before {
					if object.ObjectKind() == api.KindPlacement {
						p := get[*api.Placement](s, api.KeyOf(object))
						out[p.Metadata.Namespace+"/"+p.Metadata.Name] = fmt.Sprint(p.Metadata.ResourceVersion, p.Status.Clusters)
					}
				}
				return out
			}
			before := decisions()
			put(s, change.After)
			var decided []string
			for name, decision := range decisions() {
				if decision != before[name] {
					decided = append(decided, name)
				}
			}
			for _, wrong := range c.CompareDecided(decided) {
				t.Errorf("%s: %s; before %v", c.Name, wrong, before)
			}
		})
	}
}
