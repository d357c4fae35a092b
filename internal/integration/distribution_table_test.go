//go:build integration

package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// tableSizes are the numbers of replicas in splitTable.
var tableSizes = []int{1, 2, 3, 5, 10}

// splitTable is what the design promises: pods on on-demand nodes, by request and for each of tableSizes.
var splitTable = []struct {
	name, mode, custom, percent string
	deployment, statefulSet     []int
}{
	{name: "all-in-on-demand", mode: "all-in-on-demand", deployment: []int{1, 2, 3, 5, 10}},
	{name: "all-in-spot", mode: "all-in-spot", deployment: []int{0, 0, 0, 0, 0}},
	{name: "majority-in-on-demand", mode: "majority-in-on-demand", deployment: []int{1, 2, 2, 3, 6}},
	{name: "custom-2", mode: "custom", custom: "2", deployment: []int{1, 2, 2, 2, 2}},
	{name: "custom-30-percent", mode: "custom", percent: "30%", deployment: []int{1, 1, 1, 2, 3}},
	{name: "no-mode", deployment: []int{0, 0, 0, 0, 0}, statefulSet: []int{1, 2, 2, 3, 6}},
}

// TestDistributionTable creates workloads of both kinds and all sizes in every mode at once, and then bursts of many
// pods. Each must be split as the table says from the start: nothing is replaced, and there are never too many pods for
// on-demand nodes.
func TestDistributionTable(t *testing.T) {
	t.Parallel()
	s := startSplitCluster(t, 4, 4)
	s.startServer()
	s.register()
	targets := map[workloadID][2]int{}
	add := func(m manifest, onDemand int) {
		targets[s.create(m)] = [2]int{onDemand, m.replicas - onDemand}
	}
	began := time.Now()
	for _, row := range splitTable {
		// One row uses the other spellings of prefix and mode.
		labels, annotations := enabled(row.mode, row.custom), map[string]string{}
		if row.percent != "" {
			annotations[labelCustom] = row.percent
		}
		s.namespace(row.name, nil)
		for i, replicas := range tableSizes {
			statefulSet := row.statefulSet
			if statefulSet == nil {
				statefulSet = row.deployment
			}
			add(manifest{workloadID: workloadID{"Deployment", row.name, fmt.Sprint("d", replicas)}, replicas: replicas, labels: labels, annotations: annotations}, row.deployment[i])
			add(manifest{workloadID: workloadID{"StatefulSet", row.name, fmt.Sprint("s", replicas)}, replicas: replicas, labels: labels, annotations: annotations}, statefulSet[i])
		}
	}
	s.namespace("spelling", nil)
	for kind, name := range map[string]string{"Deployment": "web", "StatefulSet": "db"} {
		add(manifest{workloadID: workloadID{kind, "spelling", name}, replicas: 5, labels: map[string]string{
			"vacant.sh/optimize-scheduling": "true", "vacant.sh/optimize-scheduling-strategy": "custom",
			"vacant.sh/optimize-scheduling-strategy-custom-on-demand": "4",
		}}, 4)
	}
	check := func() {
		t.Helper()
		pods := 0
		for _, w := range slices.SortedFunc(maps.Keys(targets), func(a, b workloadID) int { return strings.Compare(a.String(), b.String()) }) {
			target := targets[w]
			pods += target[0] + target[1]
			if !s.reaches(w, target[0], target[1]) {
				continue
			}
			if most := s.most(w, onDemandNode); most > target[0] {
				t.Errorf("%s had %d pods for on-demand nodes at a time, want at most %d", w, most, target[0])
			}
			if of := s.replaced(w); len(of) > 0 {
				t.Errorf("the first split of %s was wrong: %d of its pods were replaced\n%s", w, len(of), s.story(w, s.endings()))
			}
			var reported *api.DistributedWorkload
			eventually.True(t, "the server reports that the workload is split", func() bool {
				reported = s.distribution(w)
				return reported != nil && reported.State == api.DistributionConverged
			})
			if d := reported; d.OnDemand != int64(target[0]) || d.Spot != int64(target[1]) || d.TargetOnDemand != int64(target[0]) || d.TargetSpot != int64(target[1]) || d.Source != api.DistributionOfLabels {
				t.Errorf("%s is split as %v, but the server reports %+v", w, target, *d)
			}
		}
		t.Logf("%d workloads with %d pods were split after %s", len(targets), pods, time.Since(began).Round(time.Millisecond))
	}
	check()
	for _, row := range splitTable {
		s.clear(s.history, row.name)
	}

	clear(targets)
	began = time.Now()
	s.namespace("burst", nil)
	add(manifest{workloadID: workloadID{"Deployment", "burst", "hundred"}, replicas: 100, labels: enabled("custom", "30")}, 30)
	for i := range 3 {
		add(manifest{workloadID: workloadID{"Deployment", "burst", fmt.Sprint("thirty-", i)}, replicas: 30, labels: enabled("custom", fmt.Sprint(10+i))}, 10+i)
	}
	add(manifest{workloadID: workloadID{"StatefulSet", "burst", "parallel"}, replicas: 20, labels: enabled("", ""), set: func(set *appsv1.StatefulSetSpec) {
		set.PodManagementPolicy = appsv1.ParallelPodManagement
	}}, 11)
	check()
}
