package ocm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Answer is this product's result for a case.
type Answer struct {
	// Refused contains the errors of a rejected spec; nothing else is set then.
	Refused api.FieldErrors
	// Status is that of the placement, Explanation that of its decision.
	Status      api.PlacementStatus
	Explanation *api.Explanation
	// EligibleSets are the sets that the placement may use. Nil: unknown.
	EligibleSets []string
}

// The codes of status_code.
const (
	codeSuccess       = "Success"
	codeWarning       = "Warning"
	codeMisconfigured = "Misconfigured"
)

// Disagreements compares an answer with the expectations of the case, and describes the differences by expectation.
func (c *Case) Disagreements(a *Answer) map[string]string {
	d := disagreements{}
	if a.Refused != nil {
		c.compareRefusal(a, d)
		return d
	}
	e := &c.Expect
	if e.StatusCode != nil {
		d.compare("status_code", codeOf(a), *e.StatusCode)
	}
	if e.StatusMessage != nil {
		d.compare("status_message", messageOf(a), *e.StatusMessage)
	}
	if e.GroupStatusCode != nil {
		d.compare("group_status_code", groupCodeOf(a), *e.GroupStatusCode)
	}
	c.compareDecision(a, d)
	c.compareScores(a, d)
	if e.AvailableClusters != nil {
		d.compare("available_clusters", passed(a.Explanation, "cluster_sets"), sorted(*e.AvailableClusters))
	}
	if e.FilterResults != nil {
		// Each filter works on what the previous ones admit; a case contains the result of the first ones.
		got := []filterResult{
			{"Predicate", passed(a.Explanation, "cluster_sets", "predicates")},
			{"Predicate,TaintToleration", passed(a.Explanation, "cluster_sets", "predicates", "taints")},
		}
		want := slices.Clone(e.FilterResults)
		for i := range want {
			want[i].Clusters = sorted(want[i].Clusters)
		}
		d.compare("filter_results", got[:min(len(want), len(got))], want)
	}
	if e.EligibleClusterSets != nil && a.EligibleSets != nil {
		d.compare("eligible_cluster_sets", a.EligibleSets, *e.EligibleClusterSets)
	}
	if e.RequeueAt != nil {
		d.compare("requeue_at", a.Explanation.NextAt, e.requeueAt())
	}
	if e.Satisfied != nil {
		d.compare("satisfied", conditionOf(&a.Status, api.ConditionSatisfied), *e.Satisfied)
	}
	if e.Misconfigured != nil {
		d.compare("misconfigured", conditionOf(&a.Status, api.ConditionMisconfigured), *e.Misconfigured)
	}
	return d
}

type disagreements map[string]string

// compare compares the JSON forms, in which an empty list differs from an absent one, and numbers are numbers.
func (d disagreements) compare(expectation string, got, want any) {
	g, errG := json.Marshal(got)
	w, errW := json.Marshal(want)
	if err := errors.Join(errG, errW); err != nil {
		d[expectation] = err.Error()
	} else if string(g) != string(w) {
		d[expectation] = fmt.Sprintf("got %s, want %s", g, w)
	}
}

// compareRefusal covers a rejected spec, which has no decision. Its messages are this product's own, which Refusals
// lists.
func (c *Case) compareRefusal(a *Answer, d disagreements) {
	c.compareDecision(&Answer{}, d)
	delete(d, "unscheduled") // no decision was attempted
	want, known := Refusals[c.ID]
	refusal := a.Refused.Error()
	code := c.Expect.StatusCode
	if code == nil {
		code = c.Expect.GroupStatusCode
	}
	switch {
	case code == nil || *code != codeMisconfigured:
		d["status_code"] = "refused: " + refusal
	case c.Expect.StatusCode != nil && *c.Expect.StatusCode != codeMisconfigured || c.Expect.GroupStatusCode != nil && *c.Expect.GroupStatusCode != codeMisconfigured:
		d["status_code"] = "refused, and the case calls it misconfigured only in part: " + refusal
	case !known:
		d["status_code"] = "refused, which Refusals does not tell: " + refusal
	case len(a.Refused) != 1 || !strings.HasSuffix(a.Refused[0].Field, want.Field) || !strings.Contains(a.Refused[0].Message, want.Message):
		d["status_code"] = fmt.Sprintf("refused with %s, want one error in %s that says %q", refusal, want.Field, want.Message)
	}
}

// groupCodeOf returns the result code of dividing the decision into groups: each cluster of the decision must be in
// exactly one.
func groupCodeOf(a *Answer) string {
	var grouped []string
	for _, g := range a.Status.DecisionGroups {
		if g.ClusterCount != int64(len(g.Clusters)) {
			return codeMisconfigured
		}
		grouped = append(grouped, g.Clusters...)
	}
	if !slices.Equal(sorted(grouped), sorted(a.Status.Clusters)) {
		return codeMisconfigured
	}
	return codeSuccess
}

func codeOf(a *Answer) string {
	if c := api.FindCondition(a.Status.Conditions, api.ConditionMisconfigured); c != nil && c.Status == api.ConditionTrue {
		return codeMisconfigured
	}
	if c := api.FindCondition(a.Status.Conditions, api.ConditionScoresValid); c != nil && c.Status == api.ConditionFalse {
		return codeWarning
	}
	return codeSuccess
}

func messageOf(a *Answer) string {
	for _, conditionType := range []string{api.ConditionMisconfigured, api.ConditionScoresValid} {
		c := api.FindCondition(a.Status.Conditions, conditionType)
		if c != nil && (c.Status == api.ConditionTrue) == (conditionType == api.ConditionMisconfigured) {
			return c.Message
		}
	}
	return ""
}

func conditionOf(s *api.PlacementStatus, conditionType string) Condition {
	c := api.FindCondition(s.Conditions, conditionType)
	if c == nil {
		return Condition{}
	}
	return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
}

func (c *Case) compareDecision(a *Answer, d disagreements) {
	e := &c.Expect
	chosen := append([]string{}, a.Status.Clusters...)
	if e.Decisions != nil {
		d.compare("decisions", chosen, *e.Decisions)
	}
	if e.DecisionSet != nil {
		d.compare("decision_set", sorted(chosen), sorted(*e.DecisionSet))
	}
	if e.NumDecisions != nil {
		d.compare("num_decisions", len(chosen), *e.NumDecisions)
	}
	if e.Unscheduled != nil {
		unscheduled := 0
		if c.Placement.NumberOfClusters != nil {
			unscheduled = int(*c.Placement.NumberOfClusters) - len(chosen)
		}
		d.compare("unscheduled", unscheduled, *e.Unscheduled)
	}
	if e.DecisionGroups != nil {
		d.compare("decision_groups", c.groupsOf(a), *e.DecisionGroups)
	}
	if e.NumPlacementDecisions != nil {
		pages := 0
		for _, g := range c.groupsOf(a) {
			pages += len(g.Decisions)
		}
		d.compare("num_placement_decisions", pages, *e.NumPlacementDecisions)
	}
}

// pageSize is the maximum number of clusters on a page of a decision.
const pageSize = 100

// groupsOf returns the groups of an answer with the pages that their clusters would be on. Here, a decision is one
// object of any size. There, each group has at least one page of its own, and the pages are numbered consecutively.
func (c *Case) groupsOf(a *Answer) []decisionGroup {
	out := []decisionGroup{}
	pages := 0
	for _, g := range a.Status.DecisionGroups {
		group := decisionGroup{Index: g.Index, Name: g.Name, ClusterCount: g.ClusterCount, Clusters: append([]string{}, g.Clusters...), Decisions: []string{}}
		for n := 0; n == 0 || n < len(g.Clusters); n += pageSize {
			pages++
			group.Decisions = append(group.Decisions, fmt.Sprintf("%s-decision-%d", c.Placement.Name, pages))
		}
		out = append(out, group)
	}
	return out
}

func (c *Case) compareScores(a *Answer, d disagreements) {
	e := &c.Expect
	feasible := map[string]*api.Candidate{}
	for i := range a.Explanation.Candidates {
		if candidate := &a.Explanation.Candidates[i]; candidate.Filter == "" {
			feasible[candidate.Cluster] = candidate
		}
	}
	if e.TotalScores != nil {
		got := map[string]float64{}
		for name, candidate := range feasible {
			got[name] = rounded(*candidate.Score)
		}
		d.compare("total_scores", got, e.TotalScores)
	}
	if e.Prioritizers == nil {
		return
	}
	type part struct{ Weight, Score float64 }
	got, want := map[string]map[string]part{}, map[string]map[string]part{}
	for name, candidate := range feasible {
		got[name], want[name] = map[string]part{}, map[string]part{}
		for _, p := range candidate.Scores {
			got[name][p.Name] = part{p.Weight, rounded(p.Value)}
		}
		for prioritizer, p := range e.Prioritizers {
			// A prioritizer that is not listed has a score of 0.
			want[name][partName(prioritizer)] = part{p.Weight, p.Scores[name]}
		}
	}
	for prioritizer, p := range e.Prioritizers {
		for _, name := range slices.Sorted(maps.Keys(p.Scores)) {
			if feasible[name] == nil {
				d["prioritizers"] = fmt.Sprintf("%s is no candidate and has a score of %s", name, prioritizer)
				return
			}
		}
	}
	d.compare("prioritizers", got, want)
}

// partName returns the name of a prioritizer in an explanation, which the cases call "Balance" or
// "AddOn/<resource>/<score>".
func partName(prioritizer string) string {
	if addon, ok := strings.CutPrefix(prioritizer, "AddOn/"); ok {
		return addon
	}
	return builtin(prioritizer)
}

// rounded removes the rounding errors of adding floats.
func rounded(v float64) float64 { return math.Round(v*1e9) / 1e9 }

// passed returns the clusters that the given filters did not reject. Earlier filters reject nothing in the cases.
func passed(e *api.Explanation, filters ...string) []string {
	out := []string{}
	for _, c := range e.Candidates {
		if c.Filter != "paused" && !slices.Contains(filters, c.Filter) {
			out = append(out, c.Cluster)
		}
	}
	return sorted(out)
}

func sorted(names []string) []string {
	out := append([]string{}, names...)
	slices.Sort(out)
	return out
}

func (e *expectations) requeueAt() *time.Time {
	var at *time.Time
	if err := json.Unmarshal(e.RequeueAt, &at); err != nil {
		return &time.Time{}
	}
	return at
}

// Compare returns what is wrong with an answer: it disagrees with the case where no difference is intended, or agrees
// where one is. Expectations about unknown parts of the answer are skipped.
func (c *Case) Compare(a *Answer) []string {
	var wrong []string
	found := c.Disagreements(a)
	meant := Differences[c.ID]
	for _, expectation := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(meant.Expectations, expectation) {
			wrong = append(wrong, expectation+": "+found[expectation])
		}
	}
	for _, expectation := range meant.Expectations {
		if found[expectation] == "" {
			wrong = append(wrong, expectation+": it agrees, and Differences says that it does not")
		}
	}
	return wrong
}
