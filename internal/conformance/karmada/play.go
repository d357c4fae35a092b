package karmada

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Simulate runs a simulation: in this process, or on a server.
type Simulate func(ctx context.Context, request api.Simulation) (*api.SimulationResult, error)

// Play runs a case step by step, each starting from the previous decisions, and returns all disagreements.
func (c *Case) Play(ctx context.Context, simulate Simulate) ([]string, error) {
	if c.Kind == Validate {
		return c.playRefusal(ctx, simulate)
	}
	script, err := c.course()
	if err != nil {
		return nil, err
	}
	difference, meant := Differences[c.ID]
	if meant {
		script.steps[len(script.steps)-1].Expect = map[string]expectation{defaultWorkload: difference.Instead}
	}
	p := newPlayer(&script, simulate)
	var wrong []string
	for i := range script.steps {
		found, err := p.play(ctx, &script.steps[i], c.Kind == Course)
		if err != nil {
			return nil, fmt.Errorf("case %s, step %d: %w", c.ID, i+1, err)
		}
		for _, text := range found {
			if len(script.steps) > 1 {
				text = fmt.Sprintf("step %d, %d s (%s): %s", i+1, script.steps[i].After, script.steps[i].Name, text)
			}
			wrong = append(wrong, text)
		}
	}
	if meant {
		agrees, err := c.agrees(p)
		if err != nil {
			return nil, err
		}
		if agrees {
			wrong = append(wrong, "it agrees, and Differences says that it does not")
		}
	}
	return wrong, nil
}

// agrees reports whether the last result is what the case itself expects.
func (c *Case) agrees(p *player) (bool, error) {
	script, err := c.course()
	if err != nil {
		return false, err
	}
	for name, want := range script.steps[len(script.steps)-1].Expect {
		if p.compare(name, &want, false) != nil {
			return false, nil
		}
	}
	return true, nil
}

// playRefusal simulates the policy of a case, which is accepted or rejected with the invalid fields.
func (c *Case) playRefusal(ctx context.Context, simulate Simulate) ([]string, error) {
	raw, err := json.Marshal(c.Policy.object(1))
	if err != nil {
		return nil, fmt.Errorf("case %s: write the policy: %w", c.ID, err)
	}
	_, err = simulate(ctx, api.Simulation{Base: "empty", Now: &epoch, Objects: []json.RawMessage{raw}})
	refused, err := refusal(err)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	return c.CompareRefusal(within(refused)), nil
}

// within returns the errors of the only object in a simulation, with their fields in that object.
func within(refused api.FieldErrors) api.FieldErrors {
	var out api.FieldErrors
	for _, e := range refused {
		out = append(out, api.FieldError{Field: strings.TrimPrefix(e.Field, "objects[0]."), Message: e.Message})
	}
	return out
}

// refusal extracts the field errors from an error.
func refusal(err error) (api.FieldErrors, error) {
	var fields api.FieldErrors
	var problem *api.Problem
	switch {
	case errors.As(err, &fields):
		return fields, nil
	case errors.As(err, &problem) && problem.Errors != nil:
		return problem.Errors, nil
	}
	return nil, err
}

// CompareRefusal compares the errors of the case's policy, or none if it is accepted, with the expectation of a case of
// kind Validate.
func (c *Case) CompareRefusal(refused api.FieldErrors) []string {
	if c.ExpectedValid == nil {
		return []string{"the case does not say whether the policy is valid"}
	}
	field, known := Refusals[c.ID]
	switch {
	case *c.ExpectedValid && refused != nil:
		return []string{"refused: " + refused.Error()}
	case *c.ExpectedValid && known:
		return []string{"Refusals has a case that is valid"}
	case *c.ExpectedValid:
		return nil
	case !known:
		return []string{fmt.Sprintf("Refusals does not tell which field is wrong; it is refused with: %s", refused.Error())}
	case len(refused) != 1 || refused[0].Field != field:
		return []string{fmt.Sprintf("refused with %q, want one error in %s", refused.Error(), field)}
	}
	return nil
}

// Document returns the policy of a case as a user would write it.
func (c *Case) Document() ([]byte, error) {
	raw, err := json.Marshal(c.Policy.object(1))
	if err != nil {
		return nil, fmt.Errorf("case %s: write the policy: %w", c.ID, err)
	}
	return raw, nil
}

// player is the state of a case between two steps.
type player struct {
	simulate  Simulate
	now       time.Time
	clusters  map[string]*api.Cluster
	policies  map[api.Key]*api.PropagationPolicy
	workloads map[string]*api.Workload
	// before contains the workloads as they were before the step.
	before map[string]*api.Workload
	last   *api.SimulationResult
}

func newPlayer(script *course, simulate Simulate) *player {
	p := &player{
		simulate: simulate, now: epoch, clusters: map[string]*api.Cluster{},
		policies: map[api.Key]*api.PropagationPolicy{}, workloads: map[string]*api.Workload{},
	}
	p.change(&step{Clusters: script.clusters, Policies: script.policies, Workloads: script.workloads})
	return p
}

// change applies the changes of a step.
func (p *player) change(s *step) {
	p.now = epoch.Add(time.Duration(s.After) * time.Second)
	for _, name := range s.Gone {
		delete(p.clusters, name)
	}
	for i := range s.Clusters {
		o := s.Clusters[i].object(p.now)
		if was := p.clusters[o.Metadata.Name]; was != nil {
			o.Metadata.Generation = was.Metadata.Generation + 1
			o.Status.ObservedGeneration = o.Metadata.Generation
		}
		p.clusters[o.Metadata.Name] = o
	}
	for _, path := range s.GonePolicies {
		delete(p.policies, api.PolicyKey(path))
	}
	for i := range s.Policies {
		o := s.Policies[i].object(1)
		if was := p.policies[api.KeyOf(o)]; was != nil {
			o.Metadata.Generation = was.Metadata.Generation + 1
		}
		p.policies[api.KeyOf(o)] = o
	}
	for _, name := range s.GoneWorkloads {
		delete(p.workloads, name)
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		o := w.object(1)
		if was := p.workloads[o.Metadata.Name]; was != nil {
			o.Metadata.Generation, o.Status = was.Metadata.Generation+1, was.Status
			o.Metadata.RescheduleRequests = was.Metadata.RescheduleRequests
		} else if w.status != nil {
			o.Metadata.Generation = 2
		}
		p.workloads[o.Metadata.Name] = o
	}
	for _, name := range s.Reschedule {
		if w := p.workloads[name]; w != nil {
			w.Metadata.RescheduleRequests++
		}
	}
	for name, reports := range s.Health {
		if p.workloads[name] == nil {
			continue
		}
		for cluster, status := range reports {
			report(p.workloads[name], cluster, status, p.now)
		}
	}
}

// report returns a health report as the server stores it.
func report(w *api.Workload, cluster string, status api.HealthStatus, now time.Time) {
	h := api.ClusterHealth{Cluster: cluster, Status: status, Since: &now, ReportedAt: &now}
	health := slices.Clone(w.Status.Health)
	if i := slices.IndexFunc(health, func(h api.ClusterHealth) bool { return h.Cluster == cluster }); i >= 0 {
		if health[i].Status == status {
			h.Since = health[i].Since
		}
		health = slices.Delete(health, i, i+1)
	}
	health = append(health, h)
	slices.SortFunc(health, func(a, b api.ClusterHealth) int { return cmp.Compare(a.Cluster, b.Cluster) })
	w.Status.Health = health
}

// play runs one step, and then simulates it again: a decision must not change when it is made again.
func (p *player) play(ctx context.Context, s *step, strict bool) ([]string, error) {
	p.change(s)
	refused, err := p.pass(ctx)
	if refused != nil || err != nil {
		return refused, err
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(s.Expect)) {
		want := s.Expect[name]
		for _, text := range p.compare(name, &want, strict) {
			wrong = append(wrong, name+": "+text)
		}
	}
	if strict && len(s.Expect) != len(p.workloads) {
		wrong = append(wrong, "the step does not say what becomes of every workload")
	}
	wrong = append(wrong, p.changes()...)
	decided, first := maps.Clone(p.workloads), p.last
	refused, err = p.pass(ctx)
	if refused != nil || err != nil {
		return refused, err
	}
	for _, name := range slices.Sorted(maps.Keys(p.workloads)) {
		was, is := decision(decided[name]), decision(p.workloads[name])
		if was != is {
			wrong = append(wrong, fmt.Sprintf("%s: is decided otherwise at a second look: first\n%s, then\n%s", name, was, is))
		}
	}
	// The next step starts from the first simulation, whose result is stored.
	p.workloads, p.last = decided, first
	return wrong, nil
}

// pass simulates the present state and takes over the decisions. It returns why the objects are rejected, if they are.
func (p *player) pass(ctx context.Context) ([]string, error) {
	request := api.Simulation{Base: "empty", Now: &p.now}
	for _, object := range p.objects() {
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", api.KeyOf(object), err)
		}
		request.Objects = append(request.Objects, raw)
	}
	result, err := p.simulate(ctx, request)
	if refused, err := refusal(err); err != nil || refused != nil {
		if err != nil {
			return nil, err
		}
		return []string{"refused: " + refused.Error()}, nil
	}
	p.before, p.last = maps.Clone(p.workloads), result
	for _, object := range result.Objects {
		w, ok := object.(*api.Workload)
		if !ok || p.workloads[w.Metadata.Name] == nil {
			continue
		}
		decided := *p.workloads[w.Metadata.Name]
		decided.Status = w.Status
		p.workloads[w.Metadata.Name] = &decided
	}
	return nil, nil
}

// objects returns all objects in a fixed order.
func (p *player) objects() []api.Object {
	var out []api.Object
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		out = append(out, p.clusters[name])
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.policies), api.Key.Compare) {
		out = append(out, p.policies[key])
	}
	for _, name := range slices.Sorted(maps.Keys(p.workloads)) {
		out = append(out, p.workloads[name])
	}
	return out
}

// decision formats what must not change when a decision is made again: everything except for messages, which describe
// the pass.
func decision(w *api.Workload) string {
	s := w.Status
	s.Health = nil
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// changes checks that the changes listed in a result are those of the statuses.
func (p *player) changes() []string {
	want := map[string]api.Change{}
	for name, is := range p.workloads {
		from, to := replicas(&p.before[name].Status), replicas(&is.Status)
		if !maps.Equal(from, to) {
			want[name] = api.Change{FromReplicas: from, ToReplicas: to}
		}
	}
	var wrong []string
	seen := map[string]bool{}
	for _, change := range p.last.Changes {
		w, ok := want[change.Name]
		seen[change.Name] = true
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s is listed as changed from %v to %v, and is not", change.Name, change.FromReplicas, change.ToReplicas))
		case !maps.Equal(w.FromReplicas, change.FromReplicas) || !maps.Equal(w.ToReplicas, change.ToReplicas):
			wrong = append(wrong, fmt.Sprintf("%s is listed as changed from %v to %v, and did from %v to %v", change.Name, change.FromReplicas, change.ToReplicas, w.FromReplicas, w.ToReplicas))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !seen[name] {
			wrong = append(wrong, name+" changes, and is not listed")
		}
	}
	return wrong
}

// complete checks that a scheduled workload has all its replicas: on each cluster if they are duplicated, in total if
// they are divided.
func (p *player) complete(w *api.Workload) []string {
	policy := p.policies[api.PolicyKey(w.Status.Policy)]
	if policy == nil || !w.Spec.Replicated() || scheduled(&w.Status)[1] != api.ReasonScheduled {
		return nil
	}
	scheduling := policy.Spec.Placement.ReplicaScheduling
	if scheduling == nil || scheduling.Type == api.Duplicated {
		for _, c := range w.Status.Clusters {
			if c.Replicas != *w.Spec.Replicas {
				return []string{fmt.Sprintf("%s has %d of %d replicas, and the workload is scheduled", c.Name, c.Replicas, *w.Spec.Replicas)}
			}
		}
		return nil
	}
	sum := int64(0)
	for _, c := range w.Status.Clusters {
		sum += c.Replicas
	}
	if sum != *w.Spec.Replicas {
		return []string{fmt.Sprintf("the clusters have %d of %d replicas, and the workload is scheduled", sum, *w.Spec.Replicas)}
	}
	return nil
}

// regions returns the regions of the clusters that have replicas, each once.
func (p *player) regions(s *api.WorkloadStatus) []string {
	var out []string
	for _, c := range s.Clusters {
		if c.Replicas > 0 && p.clusters[c.Name] != nil {
			out = append(out, p.clusters[c.Name].Spec.Region)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func replicas(s *api.WorkloadStatus) map[string]int64 {
	out := map[string]int64{}
	for _, c := range s.Clusters {
		out[c.Name] = c.Replicas
	}
	return out
}

// compare returns where a workload differs from the expectation. If strict, evictions that are not listed count as
// differences.
func (p *player) compare(name string, want *expectation, strict bool) []string {
	w := p.workloads[name]
	if w == nil {
		return []string{"there is no such workload"}
	}
	s := &w.Status
	var wrong []string
	differ := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s: got %v, want %v", what, got, want))
		}
	}
	if want.Clusters != nil {
		differ("clusters", replicas(s), want.Clusters)
	}
	if names := s.Names(); !slices.IsSorted(names) || len(slices.Compact(names)) != len(s.Clusters) {
		wrong = append(wrong, fmt.Sprintf("clusters are not listed once each by name: %q", names))
	}
	wrong = append(wrong, p.complete(w)...)
	if want.Affinity != nil {
		differ("affinity", s.ObservedAffinity, *want.Affinity)
	}
	if want.Policy != nil {
		differ("policy", s.Policy, *want.Policy)
	}
	differ("condition", scheduled(s), [2]string{status(want.Reason), cmp.Or(want.Reason, api.ReasonScheduled)})
	held := api.FindCondition(s.Conditions, api.ConditionFailoverHeld)
	differ("failover held", held != nil && held.Status == api.ConditionTrue, want.Held)
	if want.Regions != nil {
		differ("regions", p.regions(s), want.Regions)
	}
	if want.Evictions != nil || strict && !want.AnyEvictions {
		differ("evictions", evictions(s, want), want.wanted())
	}
	if strict {
		taken := int64(0)
		for _, p := range s.Preemptions {
			taken += max(p.Replicas, 1) // also if there were none to lose
		}
		differ("replicas that were taken", taken, want.Preempted)
	}
	if want.Earlier != nil {
		earlier := []string{}
		for _, e := range s.EarlierAffinities {
			earlier = append(earlier, e.AffinityName)
		}
		differ("earlier affinities", earlier, want.Earlier)
	}
	if want.moved != nil {
		was := &p.before[name].Status
		differ("moved", s.ObservedAffinity != was.ObservedAffinity || !maps.Equal(replicas(s), replicas(was)), *want.moved)
	}
	for _, cluster := range want.leaving {
		differ("leaves "+cluster, leaves(s, cluster), true)
	}
	for _, cluster := range want.gone {
		differ("leaves "+cluster, leaves(s, cluster), false)
	}
	return append(wrong, p.compareExplanation(w, want)...)
}
