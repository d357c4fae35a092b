package split_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// TestConformance runs the cases that are only about rules.
func TestConformance(t *testing.T) {
	const theirs = "the constraint is the user's to write, and the same in every case; the number that depends on the replicas is told"
	suite := conformance.Suite{
		Driver: "internal/engine/split",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"target_split":    conformance.Player(conformTargets),
			"next_pod":        conformance.Player(conformNext),
			"delete_pod":      conformance.Player(conformReplacement),
			"deletion_cost":   conformance.Player(conformCost),
			"topology_spread": conformance.Player(conformSpread),
		},
		Loose: map[string]string{
			"V1*/minDomains":        theirs,
			"V1*/preferred_weights": theirs,
			"V1*/topologyKey":       theirs,
			"V1*/whenUnsatisfiable": theirs,
		},
	}
	suite.Run(t)
}

// counts are numbers of on-demand and of spot pods.
type counts = conformance.Pair[int64]

func pair(c counts) split.Split { return split.Split{c[0], c[1]} }

type targetsIn struct {
	Kind     conformance.Field[string] `json:"kind"`
	Replicas conformance.Field[int64]  `json:"replicas"`
	Mode     conformance.Field[string] `json:"mode"`
	Custom   conformance.Field[any]    `json:"custom_on_demand"`
	Enabled  conformance.Field[*bool]  `json:"enabled"`
}

type targetsOut struct {
	Managed  *bool  `json:"managed"`
	Mode     string `json:"mode"`
	OnDemand int64  `json:"on_demand"`
	Spot     int64  `json:"spot"`
}

// settingsOf converts a case's settings to the labels and annotations of a workload.
func settingsOf(t *conformance.T, in *targetsIn) spot.Settings {
	t.Helper()
	labels, annotations := map[string]string{}, map[string]string{}
	if enabled := in.Enabled.Get(); enabled != nil {
		labels["vacant.io/optimize-scheduling"] = fmt.Sprint(*enabled)
	}
	if mode := in.Mode.Get(); mode != "" {
		labels["vacant.io/optimize-scheduling-mode"] = mode
	}
	if in.Custom.Has() {
		custom := fmt.Sprint(in.Custom.Get())
		if strings.HasSuffix(custom, "%") { // labels cannot contain it
			annotations["vacant.io/optimize-scheduling-mode-custom-on-demand"] = custom
		} else {
			labels["vacant.io/optimize-scheduling-mode-custom-on-demand"] = custom
		}
	}
	s, err := spot.ParseSettings(labels, annotations)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func conformTargets(t *conformance.T, in *targetsIn, out *targetsOut) {
	s := settingsOf(t, in)
	if in.Enabled.Has() {
		managed := s.Enabled != nil && *s.Enabled
		if want := out.Managed == nil || *out.Managed; managed != want {
			t.Errorf("managed %t, want %t", managed, want)
		}
	}
	got := split.Targets(in.Kind.Get(), in.Replicas.Get(), s.Distribution)
	if out.Managed != nil {
		return // the case does not say what its targets would be
	}
	if want := (split.Split{out.OnDemand, out.Spot}); got.Split != want {
		t.Errorf("targets %+v, want %+v", got.Split, want)
	}
	if out.Mode != "" && strings.ReplaceAll(string(got.Mode), "_", "-") != out.Mode {
		t.Errorf("mode %s, want %s", got.Mode, out.Mode)
	}
}

type nextIn struct {
	Kind      conformance.Field[string]  `json:"kind"`
	Target    conformance.Field[counts]  `json:"target"`
	Live      conformance.Field[counts]  `json:"live"`
	Rolling   conformance.Field[bool]    `json:"rolling_update"`
	Old       conformance.Field[counts]  `json:"old_rs"`
	New       conformance.Field[*counts] `json:"new_rs"`
	Recreated conformance.Field[string]  `json:"recreated"`
}

type nextOut struct {
	Pod string `json:"pod"`
}

func conformNext(t *conformance.T, in *nextIn, out *nextOut) {
	if kind := in.Kind.Get(); kind != "" && kind != api.KindDeployment && kind != api.KindStatefulSet {
		t.Fatalf("kind %s is not supported", kind)
	}
	target := split.Target{Mode: api.ModeMajorityInOnDemand, Split: pair(in.Target.Get())}
	live := pair(in.Live.Get())
	switch {
	case in.Rolling.Get():
		// Pods are counted by revision: pods of the old revision say nothing about the new one.
		revised := podsOf(pair(in.Old.Get()))
		for i := range revised {
			revised[i].Terminating = true
		}
		live = split.Live(append(revised, podsOf(pair(*in.New.Get()))...))
	case in.Recreated.Get() != "":
		// The recreated pod is not among the existing ones.
		if ordinal, err := strconv.ParseInt(strings.TrimPrefix(in.Recreated.Get(), "pod-"), 10, 64); err != nil || ordinal >= target.Total() {
			t.Fatalf("%s is not one of the %d pods", in.Recreated.Get(), target.Total())
		}
	}
	if got := split.Next(target, live); string(got) != out.Pod {
		t.Errorf("next %s, want %s", got, out.Pod)
	}
}

// podsOf creates healthy pods that run on the right node type.
func podsOf(live split.Split) (pods []split.Pod) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range live.Total() {
		kind := split.OnDemand
		if n >= live.OnDemand {
			kind = split.Spot
		}
		pods = append(pods, split.Pod{
			Name: fmt.Sprintf("p-%d", n), UID: fmt.Sprint(n), For: kind, On: kind, Ready: true, Ordinal: int(n),
			Created: start.Add(time.Duration(n) * time.Second),
		})
	}
	return pods
}

type replacementIn struct {
	Kind        conformance.Field[string]           `json:"kind"`
	Target      conformance.Field[*counts]          `json:"target"`
	Live        conformance.Field[*counts]          `json:"live"`
	Healthy     conformance.Field[*bool]            `json:"healthy"`
	Pending     conformance.Field[int64]            `json:"pending"`
	Terminating conformance.Field[int64]            `json:"deletion_timestamp_present"`
	Misplaced   conformance.Field[int]              `json:"spot_pods_on_on_demand_nodes"`
	Ordinals    conformance.Field[[]int64]          `json:"spot_ordinals"`
	Ages        conformance.Field[map[string]int64] `json:"spot_pods_age_s"`
	Enabled     conformance.Field[string]           `json:"enabled"`
	ModeChange  conformance.Field[string]           `json:"mode_change"`
	Replicas    conformance.Field[int64]            `json:"replicas"`
}

type replacementOut struct {
	// Delete is nil or null if no pod is deleted.
	Delete    *string `json:"delete"`
	Next      string  `json:"next_pod"`
	Target    *counts `json:"target"`
	Deletions *int    `json:"total_deletions"`
}

func conformReplacement(t *conformance.T, in *replacementIn, out *replacementOut) {
	target := split.Target{Mode: api.ModeMajorityInOnDemand}
	if given := in.Target.Get(); given != nil {
		target.Split = pair(*given)
	}
	if change := in.ModeChange.Get(); change != "" {
		_, to, _ := strings.Cut(change, " -> ")
		target = split.Targets(api.KindStatefulSet, in.Replicas.Get(), api.DistributionSpec{Mode: api.DistributionMode(strings.ReplaceAll(to, "-", "_"))})
		if out.Target == nil || target.Split != pair(*out.Target) {
			t.Fatalf("target %+v, want %v", target.Split, out.Target)
		}
	}
	w := split.Workload{Kind: api.KindDeployment, Replicas: target.Total(), Managed: true, Target: target}
	if live := in.Live.Get(); live != nil {
		w.Pods = podsOf(pair(*live))
	}
	if target.Spot == 5 || target.OnDemand == 5 {
		w.Target.Mode = api.ModeAllInSpot
	}
	if kind := in.Kind.Get(); kind != "" {
		w.Kind = kind
	}
	if in.Pending.Get() == 1 {
		w.Pods = append(w.Pods, split.Pod{Name: "pending", For: split.OnDemand})
	}
	if in.Terminating.Get() == 1 {
		w.Pods = append(w.Pods, split.Pod{Name: "going", For: split.Spot, On: split.Spot, Terminating: true})
	}
	for n := range in.Misplaced.Get() {
		w.Pods[len(w.Pods)-1-n].On = split.OnDemand
	}
	if ordinals := in.Ordinals.Get(); ordinals != nil {
		w.Pods = podsOf(split.Split{2, int64(len(ordinals))})
		for i, ordinal := range ordinals {
			w.Pods[2+i].Ordinal = int(ordinal)
		}
	}
	if ages := in.Ages.Get(); ages != nil {
		w.Pods = podsOf(split.Split{2, 0})
		for name, age := range ages {
			w.Pods = append(w.Pods, split.Pod{Name: name, For: split.Spot, On: split.Spot, Ready: true, Created: time.Now().Add(-time.Duration(age) * time.Second)})
		}
	}
	if healthy := in.Healthy.Get(); healthy != nil && !*healthy {
		w.Pods[0].Ready = false
	}
	switch in.Enabled.Get() {
	case "":
	case "true->false":
		w.Managed, w.Recreate, w.Replicas = false, true, int64(len(w.Pods))
	default:
		t.Fatalf("enabled %s is not supported", in.Enabled.Get())
	}
	expectReplacement(t, &w, out)
}

// expectReplacement compares the pod that is replaced first, its replacement, and the final number of pods.
func expectReplacement(t *conformance.T, w *split.Workload, out *replacementOut) {
	plan := w.Next(split.Circumstances{Now: time.Now()})
	if out.Delete == nil && out.Deletions == nil {
		if plan.Replace != nil {
			t.Errorf("the plan replaces %s, want no replacement", plan.Replace.Name)
		}
		return
	}
	if plan.Replace == nil {
		t.Fatalf("the plan replaces nothing: %s %s", plan.State, plan.Message)
	}
	if out.Delete != nil {
		first := *out.Delete
		_, repeated, _ := strings.Cut(first, ", repeat ")
		first = strings.TrimSuffix(first, ", repeat "+repeated)
		names := []string{"one " + string(plan.Replace.For), fmt.Sprintf("ordinal %d", plan.Replace.Ordinal), plan.Replace.Name}
		if plan.Replace.For != split.Unset {
			names = append(names, "one labelled")
		}
		if !slices.Contains(names, first) {
			t.Errorf("the plan replaces %q, want %s", names, first)
		}
		if repeated != "" {
			again := *w
			if total := fmt.Sprintf("%d times", replaceAll(&again)); total != repeated {
				t.Errorf("replaced %s, want %s", total, repeated)
			}
		}
	}
	if out.Next != "" {
		left := slices.DeleteFunc(slices.Clone(w.Pods), func(p split.Pod) bool { return p.Name == plan.Replace.Name })
		got := split.Unset
		if w.Managed {
			got = split.Next(w.Target, split.Live(left))
		}
		if name := map[split.NodeType]string{split.OnDemand: "on-demand", split.Spot: "spot", split.Unset: "unset"}[got]; name != out.Next {
			t.Errorf("the next pod is for %s, want %s", name, out.Next)
		}
	}
	if out.Deletions != nil {
		if got := replaceAll(w); got != *out.Deletions {
			t.Errorf("%d replaced, want %d", got, *out.Deletions)
		}
	}
}

// replaceAll acts as the controller: deleted pods come back as Next says, until nothing is replaced any more. It
// returns the number of replacements.
func replaceAll(w *split.Workload) (replaced int) {
	for ; replaced < 1000; replaced++ {
		plan := w.Next(split.Circumstances{Now: time.Now()})
		if plan.Replace == nil {
			return replaced
		}
		i := slices.IndexFunc(w.Pods, func(p split.Pod) bool { return p.UID == plan.Replace.UID })
		again := w.Pods[i]
		w.Pods = slices.Delete(slices.Clone(w.Pods), i, i+1)
		again.UID += "'"
		again.For = split.Unset
		if w.Managed {
			again.For = split.Next(w.Target, split.Live(w.Pods))
			again.On = again.For
		}
		again.Created = again.Created.Add(time.Hour)
		w.Pods = append(w.Pods, again)
	}
	return replaced
}

type costIn struct {
	Pods  conformance.Field[map[string]int64] `json:"pods"`
	Scale conformance.Field[counts]           `json:"scale"`
	Mode  conformance.Field[string]           `json:"mode"`
	Cost  conformance.Field[string]           `json:"cost"`
}

type costOut struct {
	Annotation string           `json:"annotation"`
	Order      string           `json:"order"`
	Removed    map[string]int64 `json:"removed"`
	After      *counts          `json:"after"`
	Target     *counts          `json:"target"`
	FollowUp   *int             `json:"follow_up_deletions"`
}

func conformCost(t *conformance.T, in *costIn, out *costOut) {
	if in.Cost.Has() {
		// The ReplicaSet controller deletes the pods with the lowest cost first.
		onDemand, spot := split.DeletionCosts(split.Target{Split: split.Split{3, 2}}, split.Split{3, 2})
		if in.Cost.Get() != "spot < on-demand" || out.Order != "lower cost removed first" || spot >= onDemand {
			t.Errorf("on-demand %d, spot %d, want %s, %s", onDemand, spot, in.Cost.Get(), out.Order)
		}
		if out.Annotation != split.AnnotationDeletionCost {
			t.Errorf("the cost is in annotation %s, want %s", split.AnnotationDeletionCost, out.Annotation)
		}
		return
	}
	pods, sizes := in.Pods.Get(), in.Scale.Get()
	if len(pods) != 2 {
		t.Fatalf("pods %v, want two kinds", pods)
	}
	live := split.Split{pods["on-demand"], pods["spot"]}
	d := api.DistributionSpec{Mode: api.DistributionMode(strings.ReplaceAll(in.Mode.Get(), "-", "_"))}
	onDemand, spot := split.DeletionCosts(split.Targets(api.KindDeployment, sizes[0], d), live)
	if spot >= onDemand {
		t.Fatalf("cost of on-demand %d, of spot %d, want spot lower", onDemand, spot)
	}
	gone := sizes[0] - sizes[1]
	removed := split.Split{Spot: min(gone, live.Spot)}
	removed.OnDemand = gone - removed.Spot
	after := split.Split{live.OnDemand - removed.OnDemand, live.Spot - removed.Spot}
	target := split.Targets(api.KindDeployment, sizes[1], d)
	w := split.Workload{Kind: api.KindDeployment, Replicas: after.Total(), Managed: true, Target: target, Pods: podsOf(after)}
	follow := replaceAll(&w)
	got := costOut{
		Removed: map[string]int64{"spot": removed.Spot, "on-demand": removed.OnDemand},
		After:   &counts{after.OnDemand, after.Spot}, Target: &counts{target.OnDemand, target.Spot}, FollowUp: &follow,
	}
	if !reflect.DeepEqual(&got, out) {
		t.Errorf("got %+v, want %+v", got, *out)
	}
}

type spreadIn struct {
	Replicas    conformance.Field[int64] `json:"replicas"`
	MinOnDemand conformance.Field[int64] `json:"min_on_demand"`
}

type spreadOut struct {
	MaxSkew           int64            `json:"maxSkew"`
	MinDomains        int64            `json:"minDomains"`
	WhenUnsatisfiable string           `json:"whenUnsatisfiable"`
	TopologyKey       string           `json:"topologyKey"`
	PreferredWeights  map[string]int64 `json:"preferred_weights"`
}

func conformSpread(t *conformance.T, in *spreadIn, out *spreadOut) {
	target := split.Targets(api.KindDeployment, in.Replicas.Get(), api.DistributionSpec{
		Mode: api.ModeCustom, CustomOnDemand: api.OnDemandAmount(fmt.Sprint(in.MinOnDemand.Get())),
	})
	if got := split.TopologySpread(target); got != out.MaxSkew {
		t.Errorf("max skew %d, want %v", got, out.MaxSkew)
	}
}
