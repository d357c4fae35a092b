package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// manyOf returns a simulation of clusters and placements that take all of them.
func manyOf(clusters, placements int) api.Simulation {
	request := api.Simulation{Base: "empty", Now: &epoch}
	for i := range clusters {
		request.Objects = append(request.Objects, json.RawMessage(fmt.Sprintf(`{"kind":"cluster","metadata":{"name":"c%d"},"spec":{}}`, i)))
	}
	for i := range placements {
		request.Objects = append(request.Objects, json.RawMessage(fmt.Sprintf(`{"kind":"placement","metadata":{"name":"p%d"},"spec":{}}`, i)))
	}
	return request
}

// endingContext ends once it has been asked a number of times.
type endingContext struct {
	context.Context //nolint:containedctx // it is one
	left            int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A simulation ends with its request, wherever it is: every instant at which it looks is tried.
func TestASimulationEndsWithItsRequest(t *testing.T) {
	request := manyOf(3, 3)
	for asked := 0; ; asked++ {
		ctx := &endingContext{t.Context(), asked}
		result, err := SimulateFile(ctx, request, nil, epoch)
		if err == nil {
			if len(result.Objects) != len(request.Objects) || len(result.Changes) != 3 {
				t.Errorf("asked %d times: %d objects and %d changes", asked, len(result.Objects), len(result.Changes))
			}
			// Once for each object when it is read and when it is shown, for each placement before
			// it is explained, decided and listed as a change.
			if want := 2*len(request.Objects) + 3*3; asked < want {
				t.Errorf("a simulation of %d objects asked %d times whether it shall go on, want at least %d", len(request.Objects), asked, want)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("asked %d times: %v", asked, err)
		}
	}
}

func TestTheAnswerOfASimulationIsLimited(t *testing.T) {
	run := func(limit func(*simulation)) (*api.SimulationResult, error) {
		s := newSimulation(nil, nothing{})
		limit(s)
		return s.run(t.Context(), newReadPlanner(discard()), manyOf(10, 10), epoch)
	}
	result, err := run(func(s *simulation) { s.candidates = 35 })
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Objects) != 20 || len(result.Changes) != 10 || len(result.Explanations) != 4 {
		t.Errorf("%d objects, %d changes and %d explanations, want 20, 10, and 4 of 10 candidates each", len(result.Objects), len(result.Changes), len(result.Explanations))
	}
	_, err = run(func(s *simulation) { s.chosen = 99 })
	if err == nil || !strings.Contains(err.Error(), "more than 99 clusters in all") {
		t.Errorf("got %v, want an error about decisions with more than 99 clusters", err)
	}
	if _, err = run(func(s *simulation) { s.chosen = 100 }); err != nil {
		t.Error(err)
	}
	steps := manyOf(10, 10)
	steps.Steps = true
	s := newSimulation(nil, nothing{})
	s.chosen = 99
	if _, err = s.run(t.Context(), newReadPlanner(discard()), steps, epoch); err == nil || !strings.Contains(err.Error(), "more than 99 clusters in all") {
		t.Errorf("in steps: got %v, want an error about decisions with more than 99 clusters", err)
	}
	// Ten placements that score alike share a ranking of ten clusters.
	if _, err = run(func(s *simulation) { s.ranked = 10 }); err != nil {
		t.Error(err)
	}
	request := manyOf(10, 0)
	for i := range 10 {
		request.Objects = append(request.Objects, json.RawMessage(fmt.Sprintf(
			`{"kind":"placement","metadata":{"name":"p%d"},"spec":{"strategy":"prioritizers","prioritizer_policy":{"mode":"exact","configurations":[{"type":"addon","resource_name":"a%d","score_name":"b","weight":1}]}}}`, i, i)))
	}
	for ranked, want := range map[int]string{99: "score 10 clusters in 10 different ways", 100: ""} {
		for _, request.Steps = range []bool{false, true} {
			s := newSimulation(nil, nothing{})
			s.ranked = ranked
			if _, err := s.run(t.Context(), newReadPlanner(discard()), request, epoch); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("up to %d, steps %t: %v", ranked, request.Steps, err)
			}
		}
	}
}

func TestASimulationReportsAHundredErrorsAndCountsTheOthers(t *testing.T) {
	request := api.Simulation{Base: "empty"}
	for range 5000 {
		request.Objects = append(request.Objects, json.RawMessage("{}"))
		request.Delete = append(request.Delete, api.Key{Kind: api.KindCluster, Name: "none"})
	}
	_, err := SimulateFile(t.Context(), request, nil, epoch)
	var errs api.FieldErrors
	if !errors.As(err, &errs) || len(errs) != 101 || errs[100].Error() != "… and 9900 more" {
		t.Errorf("%d errors, the last of them %v", len(errs), errs[max(len(errs)-1, 0):])
	}
}
