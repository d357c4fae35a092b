package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// drawFleet draws objects in an order in which references come after their targets.
func drawFleet(t *rapid.T) []api.Object {
	var objects []api.Object
	values := map[string]float64{}
	metrics := rapid.IntRange(1, 4).Draw(t, "metrics")
	for i := range metrics {
		// Some values are out of range, some are missing.
		if rapid.IntRange(0, 9).Draw(t, "missing") > 0 {
			values[fmt.Sprintf("m%d", i)] = float64(rapid.IntRange(-5, 110).Draw(t, "value"))
		}
	}
	objects = append(objects, staticProvider("rates", values))
	for i := range metrics {
		m := metric(fmt.Sprintf("m%d", i), rapid.SampledFrom([]string{"rates", "rates", "rates", "nobody"}).Draw(t, "provider"), fmt.Sprintf("m%d", i))
		m.Spec.OnFailure = rapid.SampledFrom([]api.OnFailure{api.FailureExclude, api.FailureIgnore}).Draw(t, "on failure")
		m.Spec.Direction = rapid.SampledFrom([]api.Direction{api.Ascending, api.Descending}).Draw(t, "direction")
		objects = append(objects, m)
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
		c := cluster(fmt.Sprintf("c%d", i))
		c.Metadata.Labels["location"] = rapid.SampledFrom([]string{"DE", "FR"}).Draw(t, "location")
		c.Spec.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
		c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "cpu")))}
		for m := range metrics {
			if rapid.Bool().Draw(t, "rated") {
				c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: fmt.Sprintf("m%d", m), Weight: number(float64(rapid.IntRange(1, 3).Draw(t, "weight")))})
			}
		}
		objects = append(objects, c)
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "placements") {
		p := placement("shop", fmt.Sprintf("p%d", i))
		p.Spec.LabelConstraints = rapid.SampledFrom([][]string{nil, {"location is DE"}, {"location in (FR)"}}).Draw(t, "label constraints")
		p.Spec.MetricConstraints = rapid.SampledFrom([][]string{nil, nil, {"m0 > 30"}}).Draw(t, "metric constraints")
		p.Spec.NumberOfClusters = rapid.SampledFrom([]*int64{nil, number(int64(1)), number(int64(2))}).Draw(t, "number")
		if rapid.Bool().Draw(t, "requests") {
			p.Spec.ResourceRequests = api.Quantities{"cpu": "2"}
		}
		objects = append(objects, p)
	}
	return objects
}

// TestSimulationOfAnEmptyBaseDecidesAsTheLiveServer simulates the same objects from nothing, through the API and on the
// command line, and compares the result with the decisions that the live server made when it got them one by one.
func TestSimulationOfAnEmptyBaseDecidesAsTheLiveServer(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		var live []api.Object
		for _, object := range drawFleet(rt) {
			object.SetDefaults()
			stored, err := s.client.Put(ctx, object, client.PutOptions{})
			if err != nil {
				rt.Fatalf("put %s: %v", api.KeyOf(object), err)
			}
			live = append(live, stored)
		}
		defer func() {
			for _, object := range live {
				if err := s.client.Delete(ctx, api.KeyOf(object)); err != nil {
					rt.Fatalf("delete %s: %v", api.KeyOf(object), err)
				}
			}
		}()
		var fresh, decided api.Simulation
		fresh.Base, decided.Base = "empty", "empty"
		explanations := map[string]*api.Explanation{}
		for i, object := range live {
			current := get[api.Object](s, api.KeyOf(object))
			live[i] = current
			decided.Objects = append(decided.Objects, json.RawMessage(toJSON(rt, current)))
			fresh.Objects = append(fresh.Objects, json.RawMessage(toJSON(rt, withoutStatus(current))))
			if p, ok := current.(*api.Placement); ok {
				explanation, err := s.client.Explain(ctx, api.KeyOf(p))
				if err != nil {
					rt.Fatal(err)
				}
				explanations[p.Metadata.Name] = explanation
				decided.Now = &explanation.At
			}
		}

		// From specs alone: the same decisions and scores, and the conditions that explain them.
		answer, err := s.client.Simulate(ctx, fresh)
		if err != nil {
			rt.Fatal(err)
		}
		compareDecisions(rt, "API", live, answer)
		compareDecisions(rt, "command", live, simulateCommand(rt, fresh))

		// With the decisions: no changes, and the same explanations, word for word.
		answer, err = s.client.Simulate(ctx, decided)
		if err != nil {
			rt.Fatal(err)
		}
		if len(answer.Changes) != 0 {
			rt.Errorf("decisions that were already made change: %+v", answer.Changes)
		}
		if len(answer.Explanations) != len(explanations) {
			rt.Fatalf("%d explanations of %d placements", len(answer.Explanations), len(explanations))
		}
		for _, explanation := range answer.Explanations {
			want := explanations[explanation.Name]
			explanation.At = want.At
			if got, want := toJSON(rt, explanation), toJSON(rt, want); got != want {
				rt.Errorf("explanation of %s:\n%s\nlive:\n%s", explanation.Name, got, want)
			}
		}
	})
}

// withoutStatus returns an object without its status. The UID stays, because it breaks ties.
func withoutStatus(object api.Object) api.Object {
	switch o := object.Copy().(type) {
	case *api.Cluster:
		o.Status = api.ClusterStatus{}
		return o
	case *api.Metric:
		o.Status = api.MetricStatus{}
		return o
	case *api.MetricsProvider:
		o.Status = api.MetricsProviderStatus{}
		return o
	case *api.Placement:
		o.Status = api.PlacementStatus{}
		return o
	}
	return object
}

func compareDecisions(t rapid.TB, by string, live []api.Object, answer *api.SimulationResult) {
	t.Helper()
	simulated := map[api.Key]*api.Placement{}
	for _, object := range answer.Objects {
		if p, ok := object.(*api.Placement); ok {
			simulated[api.KeyOf(p)] = p
		}
	}
	for _, object := range live {
		p, ok := object.(*api.Placement)
		if !ok {
			continue
		}
		if got, want := decisionOf(t, simulated[api.KeyOf(p)]), decisionOf(t, p); got != want {
			t.Errorf("by the %s, %s is\n%s\nwant as live\n%s", by, api.KeyOf(p), got, want)
		}
	}
}

// decisionOf formats a decision without times, and without who wrote the placement: nobody writes a simulated one.
func decisionOf(t rapid.TB, p *api.Placement) string {
	if p == nil {
		return "absent"
	}
	status := p.Status
	status.ScheduledAt = nil
	if status.Cause != nil {
		cause := *status.Cause
		cause.Actor = nil
		status.Cause = &cause
	}
	status.Decisions = append([]api.Decision{}, status.Decisions...)
	for i := range status.Decisions {
		status.Decisions[i].Since = nil
	}
	status.Conditions = append([]api.Condition{}, status.Conditions...)
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionAt = nil
	}
	return toJSON(t, status)
}

// simulateCommand runs a request on the command line.
func simulateCommand(t rapid.TB, request api.Simulation) *api.SimulationResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := execute(context.Background(), []string{"simulate", "-"}, strings.NewReader(toJSON(t, request)), &stdout, &stderr); code != 0 {
		t.Fatalf("simulate exits with %d: %s", code, stderr.String())
	}
	var answer struct {
		Objects []json.RawMessage `json:"objects"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		t.Fatalf("%v in %s", err, stdout.String())
	}
	result := &api.SimulationResult{}
	for _, raw := range answer.Objects {
		object, err := api.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		result.Objects = append(result.Objects, object)
	}
	return result
}

func TestSimulateCommandNamesEveryWrongField(t *testing.T) {
	request := `
objects:
- kind: cluster
  metadata: {name: Berlin}
- kind: placement
  metadata: {name: web}
  spec: {label_constraints: ["location near DE"], number_of_clusters: -1}
`
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), []string{"simulate", "-"}, strings.NewReader(request), &stdout, &stderr)
	if code != 1 || stdout.Len() != 0 {
		t.Fatalf("exit code %d, output %q", code, stdout.String())
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	for i, want := range []string{"scheduler-server: -", "  objects[0].metadata.name: ", "  objects[1].spec.number_of_clusters: ", "  objects[1].spec.label_constraints[0]: "} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d should begin with %q:\n%s", i, want, stderr.String())
		}
	}
}

func TestSimulateCommandRefuses(t *testing.T) {
	for name, c := range map[string]struct{ request, want string }{
		"a live base":      {`{"base":"live"}`, "requires a server"},
		"an unknown field": {`{"object":[]}`, "object: is not a known field"},
		"a key twice":      {"base: empty\nbase: empty\n", "already"},
		"no document":      {`{`, "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := execute(t.Context(), []string{"simulate", "-"}, strings.NewReader(c.request), &bytes.Buffer{}, &stderr)
			if code != 1 || !strings.Contains(stderr.String(), c.want) {
				t.Fatalf("exit code %d: %s", code, stderr.String())
			}
		})
	}
}
