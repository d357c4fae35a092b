package division

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// conformanceCase is an input of Karmada's scheduler and its result.
type conformanceCase struct {
	ID     string
	Kind   string
	Name   string
	Source string

	Expected      json.RawMessage
	ExpectedError *struct{ Class, Contains string } `json:"expected_error"`

	// Apportionment.
	NewReplicas int64 `json:"new_replicas"`
	Weights     map[string]int64
	Initial     map[string]int64
	Tie, UID    string

	// Selection.
	Groups []struct {
		Name          string
		Value, Weight int64
	}
	Min, Max, Target int64
	Clusters         []conformanceCluster
	Regions          []struct {
		Name     string
		Score    int64
		Clusters []conformanceCluster
	}
	Spread            json.RawMessage
	NeedReplicas      int64                  `json:"need_replicas"`
	ReplicaScheduling *conformanceScheduling `json:"replica_scheduling"`
	ExpectedOrder     []string               `json:"expected_order"`
	Replicas          int64
	MinGroups         int64 `json:"min_groups"`
	ExpectedScore     int64 `json:"expected_score"`
	Group1, Group2    []conformanceCluster
	AtLeast           bool `json:"expected_group1_at_least_group2"`

	// A whole division.
	Workload struct {
		Replicas   int64
		IsWorkload bool `json:"is_workload"`
		UID        string
	}
	Policy struct {
		ReplicaScheduling *conformanceScheduling  `json:"replica_scheduling"`
		SpreadConstraints []conformanceConstraint `json:"spread_constraints"`
	}
	Previous map[string]int64
	Fresh    bool
	Options  struct {
		Empty bool `json:"empty_workload_propagation"`
	}
}

type conformanceCluster struct {
	Name              string
	Score, Available  int64
	AvailableReplicas *int64 `json:"available_replicas"`
	Region, Provider  string
}

type conformanceScheduling struct {
	Type, Preference string
	DynamicWeight    string `json:"dynamic_weight"`
	StaticWeights    []struct {
		Target struct {
			ClusterNames []string `json:"cluster_names"`
		}
		Weight int64
	} `json:"static_weights"`
}

type conformanceConstraint struct {
	By       string
	Min, Max int64
}

// deviation is a case for which we return another result than Karmada.
type deviation struct {
	why string
	// agrees says that the results agree if clusters report no capacity.
	agrees bool
}

var roomForNone = deviation{"capacity holds for every mode, and the clusters have room for none", true}

// deviations lists the cases with another result, and why.
var deviations = map[string]deviation{
	"schedule-004":      roomForNone,
	"schedule-005":      roomForNone,
	"schedule-006":      roomForNone,
	"schedule-009":      roomForNone,
	"schedule-011":      roomForNone,
	"schedule-016":      roomForNone,
	"schedule-039":      roomForNone,
	"schedule-066":      roomForNone,
	"schedule-096":      roomForNone,
	"schedule-098":      roomForNone,
	"schedule-067":      {"spread constraints hold for static weights too, and one cluster is allowed", false},
	"select_scored-003": {"spread constraints and capacity hold for static weights too, and a cluster without weight gets nothing", false},
}

// TestConformance compares with Karmada, case by case.
func TestConformance(t *testing.T) {
	all, err := conformance.Of("internal/engine/division")
	if err != nil {
		t.Fatal(err)
	}
	cases := make([]conformanceCase, len(all))
	for i := range all {
		if err := conformance.Decode(all[i].Raw, &cases[i]); err != nil {
			t.Fatalf("%s: %v", all[i].ID, err)
		}
	}
	conform := map[string]func(t *testing.T, c *conformanceCase) bool{
		"apportion":           conformApportion,
		"apportion_uid":       conformApportion,
		"select_groups":       conformSelectGroups,
		"select_scored":       conformSelectScored,
		"select_regions":      conformSelectRegions,
		"group_score":         conformGroupScore,
		"group_score_compare": conformGroupScore,
		"schedule":            conformDivide,
	}
	seen := map[string]bool{}
	for i := range cases {
		c := &cases[i]
		t.Run(c.ID, func(t *testing.T) {
			deviation, deviates := deviations[c.ID]
			seen[c.ID] = true
			switch agrees := conform[c.Kind](t, c); {
			case agrees && deviates:
				t.Errorf("%s: agrees, but is listed as a deviation: %s", c.Name, deviation.why)
			case !agrees && !deviates:
				t.Errorf("%s: disagrees, and is not listed as a deviation", c.Name)
			}
			if deviation.agrees {
				for i := range c.Clusters {
					c.Clusters[i].AvailableReplicas = nil
				}
				if !conform[c.Kind](t, c) {
					t.Errorf("%s: disagrees if clusters report no room", c.Name)
				}
			}
			if !deviates {
				checkNoticed(t, conform[c.Kind], all[i].Raw)
			}
		})
	}
	for id := range deviations {
		if !seen[id] {
			t.Errorf("deviation %s: no such case", id)
		}
	}
}

// scheduling and constraints are the parts of the policies in the cases.
var (
	scheduling  = []string{"type", "preference", "dynamic_weight", "static_weights/*/target/cluster_names/*", "static_weights/*/weight"}
	constraints = []string{"by", "min", "max"}
)

func under(path string, fields []string) []string {
	var out []string
	for _, field := range fields {
		out = append(out, path+"/"+field)
	}
	return out
}

// compared lists the fields that the drivers read, by kind. A case with any other field would not be tested completely.
var compared = map[string][]string{
	"apportion":     {"new_replicas", "weights/*", "initial/*", "tie", "expected/*"},
	"apportion_uid": {"new_replicas", "weights/*", "uid", "expected/*"},
	"select_groups": {"groups/*/name", "groups/*/value", "groups/*/weight", "min", "max", "target", "expected/*"},
	"select_scored": slices.Concat(
		[]string{"clusters/*/name", "clusters/*/score", "clusters/*/available", "need_replicas", "expected_order/*", "expected_error/class"},
		under("spread", constraints), under("replica_scheduling", scheduling)),
	"select_regions": slices.Concat(
		[]string{"regions/*/name", "regions/*/score", "regions/*/clusters/*/name", "regions/*/clusters/*/score", "regions/*/clusters/*/available", "expected_order/*", "expected_error/class"},
		under("spread/*", constraints)),
	"group_score": slices.Concat(
		[]string{"clusters/*/score", "clusters/*/available", "replicas", "min_groups", "expected_score"},
		under("replica_scheduling", scheduling)),
	"group_score_compare": slices.Concat(
		[]string{"group1/*/score", "group1/*/available", "group2/*/score", "group2/*/available", "replicas", "min_groups", "expected_group1_at_least_group2"},
		under("replica_scheduling", scheduling)),
	"schedule": slices.Concat(
		[]string{
			"clusters/*/name", "clusters/*/region", "clusters/*/provider", "clusters/*/available_replicas", "previous/*", "fresh",
			"workload/replicas", "workload/is_workload", "workload/uid", "options/empty_workload_propagation", "expected/*", "expected_error/class",
		},
		under("policy/replica_scheduling", scheduling), under("policy/spread_constraints/*", constraints)),
}

// checkNoticed checks that every field of a case is read, and that the case would fail if another result were expected.
func checkNoticed(t *testing.T, conform func(*testing.T, *conformanceCase) bool, raw json.RawMessage) {
	t.Helper()
	variants, err := conformance.Variants(raw)
	if err != nil {
		t.Fatal(err)
	}
	var kind struct{ Kind string }
	if err := json.Unmarshal(raw, &kind); err != nil {
		t.Fatal(err)
	}
	for _, v := range variants {
		field := strings.TrimPrefix(v.Path, "/")
		name, within, _ := strings.Cut(field, "/")
		if slices.Contains([]string{"id", "kind", "name", "source", ""}, name) || field == "expected_error/contains" {
			continue // describes the case, or is Karmada's wording
		}
		if v.Change == conformance.Other && !slices.ContainsFunc(compared[kind.Kind], func(pattern string) bool {
			matches, err := path.Match(pattern, field)
			return err == nil && matches
		}) {
			t.Errorf("field %s is never read", field)
		}
		if !strings.HasPrefix(name, "expected") || within == "" && v.Change == conformance.Less {
			continue
		}
		var other conformanceCase
		if conformance.Decode(v.Document, &other) == nil && agreesAnyway(t, conform, &other) {
			t.Errorf("%s: the driver does not notice %s", field, v.Change)
		}
	}
}

// agreesAnyway reports whether a case still passes with another expectation. A case that cannot be parsed does not.
func agreesAnyway(t *testing.T, conform func(*testing.T, *conformanceCase) bool, c *conformanceCase) bool {
	t.Helper()
	if c.Expected != nil && c.Kind != "select_groups" && json.Unmarshal(c.Expected, &map[string]int64{}) != nil {
		return false
	}
	if c.Expected != nil && c.Kind == "select_groups" && json.Unmarshal(c.Expected, &[]string{}) != nil {
		return false
	}
	return conform(t, c)
}

// descending returns the order of ties for a workload.
func descending(uid string) bool {
	h := fnv.New32a()
	h.Write([]byte(uid))
	return h.Sum32()%2 == 1
}

func conformApportion(t *testing.T, c *conformanceCase) bool {
	names := slices.Sorted(maps.Keys(c.Weights))
	for name := range c.Initial {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var parties []party
	for i, name := range names {
		parties = append(parties, party{votes: c.Weights[name], replicas: c.Initial[name], upper: math.MaxInt64, rank: int32(i), place: int32(i)})
	}
	apportion(parties, c.NewReplicas, c.Tie == "desc" || descending(c.UID) && c.UID != "")
	got := map[string]int64{}
	for _, party := range parties {
		got[names[party.place]] = party.replicas
	}
	return agree(t, c, got)
}

// agree compares numbers by name.
func agree(t *testing.T, c *conformanceCase, got map[string]int64) bool {
	want := map[string]int64{}
	if err := json.Unmarshal(c.Expected, &want); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Logf("got %v, Karmada %v", got, want)
		return false
	}
	return true
}

func conformSelectGroups(t *testing.T, c *conformanceCase) bool {
	var groups []group
	var names []string
	for i, g := range c.Groups {
		groups = append(groups, group{id: int32(i), value: g.Value, weight: g.Weight})
		names = append(names, g.Name)
	}
	var s pathSearch
	got := []string{}
	if s.choose(groups, names, c.Min, c.Max, c.Target) {
		for _, i := range s.byWeight(groups) {
			if groups[i].picked {
				got = append(got, names[groups[i].id])
			}
		}
	}
	want := []string{}
	if err := json.Unmarshal(c.Expected, &want); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Logf("got %v, Karmada %v", got, want)
		return false
	}
	return true
}

// request translates a policy into a request.
func (s *conformanceScheduling) request(replicas int64) *Request {
	r := &Request{Replicas: replicas, Replicated: true}
	switch {
	case s == nil || s.Type == "Duplicated":
	case s.Preference == "Aggregated":
		r.Mode = Aggregate
	case s.DynamicWeight != "":
		r.Mode = Dynamic
	default:
		r.Mode = Static
	}
	return r
}

func (s *conformanceScheduling) weigh(c *Candidate, name string) {
	if s == nil {
		return
	}
	for _, w := range s.StaticWeights {
		if slices.Contains(w.Target.ClusterNames, name) {
			c.Weight = max(c.Weight, w.Weight)
		}
	}
}

func (c conformanceConstraint) constraint() Constraint {
	if c.Max == 0 {
		c.Max = Unlimited
	}
	return Constraint{By: c.By, Min: c.Min, Max: c.Max}
}

// scored returns candidates with scores, the best in tier 0.
func scored(clusters []conformanceCluster) (names []string, candidates []Candidate) {
	var scores []int64
	for _, c := range clusters {
		names = append(names, c.Name)
		scores = append(scores, -c.Score)
	}
	slices.Sort(names)
	slices.Sort(scores)
	scores = slices.Compact(scores)
	for _, c := range clusters {
		tier := slices.Index(scores, -c.Score)
		rank := int32(slices.Index(names, c.Name))
		candidates = append(candidates, Candidate{Row: rank, Rank: rank, Tier: int32(tier), Free: c.Available, Max: Unlimited})
	}
	return names, candidates
}

func conformSelectScored(t *testing.T, c *conformanceCase) bool {
	var spread conformanceConstraint
	if err := json.Unmarshal(c.Spread, &spread); err != nil {
		t.Fatal(err)
	}
	r := c.ReplicaScheduling.request(c.NeedReplicas)
	if c.ReplicaScheduling == nil {
		// The case tests only the selection.
		r.Mode = Duplicate
	}
	r.Constraints = []Constraint{spread.constraint()}
	names, candidates := scored(c.Clusters)
	for i := range candidates {
		c.ReplicaScheduling.weigh(&candidates[i], names[candidates[i].Row])
	}
	var d Divider
	d.ceiling = [2]int64{Unlimited, Unlimited}
	d.gather(r, candidates)
	err := d.choose(r)
	return c.agreeSelection(t, &d, names, err)
}

// agreeSelection compares the selected clusters, in order.
func (c *conformanceCase) agreeSelection(t *testing.T, d *Divider, names []string, err error) bool {
	if err != nil || c.ExpectedError != nil {
		return c.agreeError(t, err)
	}
	var got []string
	entries := d.entriesOf(everywhere)
	slices.SortFunc(entries, compareEntries)
	for _, e := range entries {
		got = append(got, names[d.places[e.place].row])
	}
	want := slices.Clone(c.ExpectedOrder)
	if !slices.Equal(got, want) {
		t.Logf("got %v, Karmada %v", got, want)
		return false
	}
	return true
}

// agreeError compares the classes of errors.
func (c *conformanceCase) agreeError(t *testing.T, err error) bool {
	class := ""
	var room *NoRoomError
	var none *NoCandidatesError
	switch {
	case err == nil:
	case errors.As(err, &none):
		class = "no_fit"
	case errors.As(err, &room) && room.by != "cluster":
		class = "unschedulable"
	default:
		class = "select_failed"
	}
	if c.ExpectedError == nil || class != c.ExpectedError.Class {
		t.Logf("got %v (%s), Karmada %+v", err, class, c.ExpectedError)
		return false
	}
	return true
}

func conformSelectRegions(t *testing.T, c *conformanceCase) bool {
	var spreads []conformanceConstraint
	if err := json.Unmarshal(c.Spread, &spreads); err != nil {
		t.Fatal(err)
	}
	var clusters []conformanceCluster
	for _, region := range c.Regions {
		clusters = append(clusters, region.Clusters...)
	}
	names, candidates := scored(clusters)
	g := &Groups{Of: make([]int32, len(names))}
	var groups []group
	for i, region := range c.Regions {
		g.Names = append(g.Names, region.Name)
		groups = append(groups, group{id: int32(i), value: int64(len(region.Clusters)), weight: region.Score})
		for _, cluster := range region.Clusters {
			g.Of[slices.Index(names, cluster.Name)] = int32(i)
		}
	}
	r := &Request{}
	for _, s := range spreads {
		constraint := s.constraint()
		if s.By != "cluster" {
			constraint.Groups = g
		}
		r.Constraints = append(r.Constraints, constraint)
	}
	var d Divider
	d.ceiling = [2]int64{Unlimited, Unlimited}
	d.gather(r, candidates)
	err := d.limit(r)
	if err == nil {
		// The weights of the regions are part of the case.
		region := r.Constraints[slices.IndexFunc(r.Constraints, func(c Constraint) bool { return c.Groups != nil })]
		var order []int
		if len(d.limits.tallies) > 0 {
			order = []int{0}
			d.limits.clear()
		}
		err = &spreadError{}
		if d.path.choose(groups, g.Names, region.Min, region.Max, d.limits.least) {
			for i := range groups {
				if groups[i].picked {
					d.picked = append(d.picked, groups[i].id)
				}
			}
			d.allow(g)
			if d.complete(r, attempt{order: order}) {
				err = nil
				d.keepChosen()
			}
		}
	}
	return c.agreeSelection(t, &d, names, err)
}

func groupScore(c *conformanceCase, clusters []conformanceCluster) int64 {
	r := c.ReplicaScheduling.request(c.Replicas)
	g := &Groups{Names: []string{"g"}, Of: make([]int32, len(clusters))}
	r.Constraints = []Constraint{{By: "region", Min: c.MinGroups, Max: Unlimited, Groups: g}}
	var candidates []Candidate
	for i, cluster := range clusters {
		candidates = append(candidates, Candidate{
			Row: int32(i), Rank: int32(i), Present: cluster.Score == presentScore, Free: cluster.Available, Max: Unlimited,
		})
	}
	var d Divider
	d.ceiling = [2]int64{Unlimited, Unlimited}
	d.gather(r, candidates)
	var t tally
	t.reset(&r.Constraints[0])
	groups := d.rate(r, &t, attempt{})
	if len(groups) == 0 {
		return 0
	}
	return groups[0].weight
}

func conformGroupScore(t *testing.T, c *conformanceCase) bool {
	for _, cluster := range slices.Concat(c.Clusters, c.Group1, c.Group2) {
		if cluster.Score != 0 && cluster.Score != presentScore {
			t.Fatalf("%d is not one of the scores of clusters", cluster.Score)
		}
	}
	if c.Kind == "group_score" {
		got := groupScore(c, c.Clusters)
		t.Logf("got %d, Karmada %d", got, c.ExpectedScore)
		return got == c.ExpectedScore
	}
	one, two := groupScore(c, c.Group1), groupScore(c, c.Group2)
	t.Logf("got %d and %d, Karmada says %v", one, two, c.AtLeast)
	return (one >= two) == c.AtLeast
}

// conformDivide runs a whole division over given clusters.
func conformDivide(t *testing.T, c *conformanceCase) bool {
	r := c.Policy.ReplicaScheduling.request(c.Workload.Replicas)
	r.Replicated = c.Workload.IsWorkload
	r.Fresh, r.Empty = c.Fresh, c.Options.Empty
	r.Descending = c.Workload.UID != "" && descending(c.Workload.UID)
	var names []string
	for _, cluster := range c.Clusters {
		names = append(names, cluster.Name)
	}
	slices.Sort(names)
	for _, s := range c.Policy.SpreadConstraints {
		constraint := s.constraint()
		if s.By != "cluster" {
			g := &Groups{Of: make([]int32, len(names))}
			for _, cluster := range c.Clusters {
				name := map[string]string{"region": cluster.Region, "provider": cluster.Provider}[s.By]
				id := -1
				if name != "" {
					if id = slices.Index(g.Names, name); id < 0 {
						id = len(g.Names)
						g.Names = append(g.Names, name)
					}
				}
				g.Of[slices.Index(names, cluster.Name)] = int32(id)
			}
			constraint.Groups = g
		}
		r.Constraints = append(r.Constraints, constraint)
	}
	var candidates []Candidate
	for _, cluster := range c.Clusters {
		rank := int32(slices.Index(names, cluster.Name))
		held, present := c.Previous[cluster.Name]
		candidate := Candidate{Row: rank, Rank: rank, Present: present, Assigned: held, Free: Unknown, Max: Unlimited}
		if cluster.AvailableReplicas != nil {
			candidate.Free = *cluster.AvailableReplicas
		}
		c.Policy.ReplicaScheduling.weigh(&candidate, cluster.Name)
		candidates = append(candidates, candidate)
	}
	var d Divider
	res, err := d.Divide(r, candidates)
	if err != nil || c.ExpectedError != nil {
		return c.agreeError(t, err)
	}
	got := map[string]int64{}
	for _, s := range res.Shares {
		got[names[s.Row]] = s.Replicas
	}
	return agree(t, c, got)
}
