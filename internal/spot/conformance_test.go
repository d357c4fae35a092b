package spot

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// conformanceCase is one case of testdata/vmanager.json.
type conformanceCase struct {
	ID    string         `json:"id"`
	Group string         `json:"grp"`
	In    map[string]any `json:"in"`
	Out   map[string]any `json:"out"`
}

// elsewhere are the groups and cases that other packages run: they need a request, or
// a cluster.
var elsewhere = map[string]string{
	"label_validate": "internal/spot/webhook",
	"affinity_patch": "internal/spot/webhook",
	"V067":           "internal/spot/webhook: the owner of a pod is read from the request",
	"V068":           "internal/spot/webhook: likewise",
	"V073":           "internal/spot/inventory: what is not known is asked for",
}

// TestConformance runs the cases that are about rules alone.
func TestConformance(t *testing.T) {
	data, err := os.ReadFile("testdata/vmanager.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []conformanceCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	run := map[string]func(*testing.T, conformanceCase){
		"target_split": conformTargets, "next_pod": conformNext, "delete_pod": conformReplacement,
		"deletion_cost": conformCost, "topology_spread": conformSpread,
	}
	ran := 0
	for _, c := range cases {
		if elsewhere[c.Group] != "" || elsewhere[c.ID] != "" {
			continue
		}
		check := run[c.Group]
		if check == nil {
			t.Errorf("%s: nobody runs the group %s", c.ID, c.Group)
			continue
		}
		ran++
		t.Run(c.ID, func(t *testing.T) { check(t, c) })
	}
	if ran < 44 {
		t.Errorf("%d cases ran", ran)
	}
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func number(v any) int64 {
	f, _ := v.(float64)
	return int64(f)
}

func pair(v any) Split {
	list, _ := v.([]any)
	return Split{number(list[0]), number(list[1])}
}

// settingsOf writes a case's wishes as the labels and annotations of a workload.
func settingsOf(t *testing.T, in map[string]any) Settings {
	t.Helper()
	labels, annotations := map[string]string{}, map[string]string{}
	if enabled, ok := in["enabled"]; ok && enabled != nil {
		labels["vacant.io/optimize-scheduling"] = text(enabled)
	}
	if mode := text(in["mode"]); mode != "" {
		labels["vacant.io/optimize-scheduling-mode"] = mode
	}
	switch custom := text(in["custom_on_demand"]); {
	case strings.HasSuffix(custom, "%"):
		annotations["vacant.io/optimize-scheduling-mode-custom-on-demand"] = custom
	case custom != "":
		labels["vacant.io/optimize-scheduling-mode-custom-on-demand"] = custom
	}
	s, err := ParseSettings(labels, annotations)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func conformTargets(t *testing.T, c conformanceCase) {
	s := settingsOf(t, c.In)
	if managed, ok := c.Out["managed"]; ok {
		if got := s.Enabled != nil && *s.Enabled; got != managed {
			t.Errorf("managed %t, want %t", got, managed)
		}
		return
	}
	got := Targets(text(c.In["kind"]), number(c.In["replicas"]), s.Distribution)
	if want := (Split{number(c.Out["on_demand"]), number(c.Out["spot"])}); got.Split != want {
		t.Errorf("targets %+v, want %+v", got.Split, want)
	}
	if mode := text(c.Out["mode"]); mode != "" && strings.ReplaceAll(string(got.Mode), "_", "-") != mode {
		t.Errorf("mode %s, want %s", got.Mode, mode)
	}
}

func conformNext(t *testing.T, c conformanceCase) {
	target := Target{Mode: api.ModeMajorityInOnDemand, Split: pair(c.In["target"])}
	live, ok := c.In["live"]
	if !ok {
		live = c.In["new_rs"] // pods of the new revision only
	}
	if got := Next(target, pair(live)); string(got) != c.Out["pod"] {
		t.Errorf("next %s, want %s", got, c.Out["pod"])
	}
}

// podsOf makes pods that run where they are for, and are well.
func podsOf(live Split) (pods []Pod) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range live.Total() {
		kind := OnDemand
		if n >= live.OnDemand {
			kind = Spot
		}
		pods = append(pods, Pod{
			Name: fmt.Sprintf("p-%d", n), UID: fmt.Sprint(n), For: kind, On: kind, Ready: true, Ordinal: int(n),
			Created: start.Add(time.Duration(n) * time.Second),
		})
	}
	return pods
}

func conformReplacement(t *testing.T, c conformanceCase) {
	target := Target{Mode: api.ModeMajorityInOnDemand}
	if in, ok := c.In["target"]; ok {
		target.Split = pair(in)
	}
	if out, ok := c.Out["target"]; ok {
		target = Targets(api.KindStatefulSet, number(c.In["replicas"]), api.DistributionSpec{Mode: api.ModeMajorityInOnDemand})
		if target.Split != pair(out) {
			t.Fatalf("target %+v, want %v", target.Split, out)
		}
	}
	w := Workload{Kind: api.KindDeployment, Replicas: target.Total(), Managed: true, Target: target}
	if live, ok := c.In["live"]; ok {
		w.Pods = podsOf(pair(live))
	}
	if target.Spot == 5 || target.OnDemand == 5 {
		w.Target.Mode = api.ModeAllInSpot
	}
	if kind := text(c.In["kind"]); kind != "" {
		w.Kind = kind
	}
	if healthy, ok := c.In["healthy"]; ok && healthy == false {
		w.Pods[0].Ready = false
	}
	if number(c.In["pending"]) == 1 {
		w.Pods = append(w.Pods, Pod{Name: "pending", For: OnDemand})
	}
	if number(c.In["deletion_timestamp_present"]) == 1 {
		w.Pods = append(w.Pods, Pod{Name: "going", For: Spot, On: Spot, Terminating: true})
	}
	for n := range number(c.In["spot_pods_on_on_demand_nodes"]) {
		w.Pods[len(w.Pods)-1-int(n)].On = OnDemand
	}
	if list, ok := c.In["spot_ordinals"].([]any); ok {
		w.Pods = podsOf(Split{2, int64(len(list))})
		for i, ordinal := range list {
			w.Pods[2+i].Ordinal = int(number(ordinal))
		}
	}
	if ages, ok := c.In["spot_pods_age_s"].(map[string]any); ok {
		w.Pods = podsOf(Split{2, 0})
		for name, age := range ages {
			w.Pods = append(w.Pods, Pod{Name: name, For: Spot, On: Spot, Ready: true, Created: time.Now().Add(-time.Duration(number(age)) * time.Second)})
		}
	}
	if strings.HasPrefix(text(c.In["enabled"]), "true->false") {
		w.Managed, w.Recreate, w.Replicas = false, true, int64(len(w.Pods))
	}
	expectReplacement(t, &w, c)
}

func expectReplacement(t *testing.T, w *Workload, c conformanceCase) {
	plan := w.Next(Circumstances{Now: time.Now()})
	switch want := text(c.Out["delete"]); {
	case want == "":
		if _, said := c.Out["delete"]; said && plan.Replace != nil {
			t.Errorf("it replaces %s", plan.Replace.Name)
		}
	case plan.Replace == nil:
		t.Fatalf("it replaces nothing: %s %s", plan.State, plan.Message)
	case want == "one spot", want == "one on-demand":
		if string(plan.Replace.For) != strings.TrimPrefix(want, "one ") {
			t.Errorf("it replaces one for %s, want %s", plan.Replace.For, want)
		}
	case strings.HasPrefix(want, "ordinal "):
		if fmt.Sprintf("ordinal %d", plan.Replace.Ordinal) != want {
			t.Errorf("it replaces ordinal %d, want %s", plan.Replace.Ordinal, want)
		}
	case strings.HasPrefix(want, "one labelled"):
		if plan.Replace.For == Unset {
			t.Error("it replaces a pod that nobody labelled")
		}
		if total := replaceAll(w); total != 5 {
			t.Errorf("%d replaced, want 5", total)
		}
	case plan.Replace.Name != want:
		t.Errorf("it replaces %s, want %s", plan.Replace.Name, want)
	}
	if next := text(c.Out["next_pod"]); next == "on-demand" || next == "spot" {
		left := slices.DeleteFunc(slices.Clone(w.Pods), func(p Pod) bool { return p.Name == plan.Replace.Name })
		if got := Next(w.Target, Live(left)); string(got) != next {
			t.Errorf("the next is for %s, want %s", got, next)
		}
	}
	if total, ok := c.Out["total_deletions"]; ok {
		if got := replaceAll(w); int64(got) != number(total) {
			t.Errorf("%d replaced, want %v", got, total)
		}
	}
}

// replaceAll plays the controller: what is replaced comes back as what Next says, until
// nothing is replaced any more. It returns how many were.
func replaceAll(w *Workload) (replaced int) {
	for ; replaced < 1000; replaced++ {
		plan := w.Next(Circumstances{Now: time.Now()})
		if plan.Replace == nil {
			return replaced
		}
		i := slices.IndexFunc(w.Pods, func(p Pod) bool { return p.UID == plan.Replace.UID })
		again := w.Pods[i]
		w.Pods = slices.Delete(slices.Clone(w.Pods), i, i+1)
		again.UID += "'"
		again.For = Unset
		if w.Managed {
			again.For = Next(w.Target, Live(w.Pods))
			again.On = again.For
		}
		again.Created = again.Created.Add(time.Hour)
		w.Pods = append(w.Pods, again)
	}
	return replaced
}

func conformCost(t *testing.T, c conformanceCase) {
	if annotation := text(c.Out["annotation"]); annotation != "" {
		onDemand, spot := DeletionCosts(Target{Split: Split{3, 2}}, Split{3, 2})
		if annotation != AnnotationDeletionCost || spot >= onDemand {
			t.Errorf("%s: on-demand %d, spot %d", AnnotationDeletionCost, onDemand, spot)
		}
		return
	}
	// The controller of ReplicaSets takes the pods with the lowest cost.
	live := Split{number(c.In["pods"].(map[string]any)["on-demand"]), number(c.In["pods"].(map[string]any)["spot"])}
	sizes := c.In["scale"].([]any)
	d := api.DistributionSpec{Mode: api.ModeMajorityInOnDemand}
	onDemand, spot := DeletionCosts(Targets(api.KindDeployment, number(sizes[0]), d), live)
	if spot >= onDemand {
		t.Fatalf("on-demand %d, spot %d", onDemand, spot)
	}
	gone := number(sizes[0]) - number(sizes[1])
	removed := Split{Spot: min(gone, live.Spot)}
	removed.OnDemand = gone - removed.Spot
	after := Split{live.OnDemand - removed.OnDemand, live.Spot - removed.Spot}
	target := Targets(api.KindDeployment, number(sizes[1]), d)
	w := Workload{Kind: api.KindDeployment, Replicas: after.Total(), Managed: true, Target: target, Pods: podsOf(after)}
	got := map[string]any{
		"removed": map[string]any{"spot": float64(removed.Spot), "on-demand": float64(removed.OnDemand)},
		"after":   []any{float64(after.OnDemand), float64(after.Spot)}, "target": []any{float64(target.OnDemand), float64(target.Spot)},
		"follow_up_deletions": float64(replaceAll(&w)),
	}
	if !reflect.DeepEqual(got, c.Out) {
		t.Errorf("got %v, want %v", got, c.Out)
	}
}

func conformSpread(t *testing.T, c conformanceCase) {
	target := Targets(api.KindDeployment, number(c.In["replicas"]), api.DistributionSpec{
		Mode: api.ModeCustom, CustomOnDemand: api.OnDemandAmount(fmt.Sprint(number(c.In["min_on_demand"]))),
	})
	if got := TopologySpread(target); got != number(c.Out["maxSkew"]) {
		t.Errorf("max skew %d, want %v", got, c.Out["maxSkew"])
	}
}
