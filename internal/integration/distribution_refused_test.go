//go:build integration

package integration

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDistributionRefused covers pods that the webhook has admitted and that are never created: dry runs, and those
// that a quota rejects. They do not count in the split. Neither do pods that are not split.
func TestDistributionRefused(t *testing.T) {
	t.Parallel()
	s := startSplitCluster(t, 2, 2)
	s.startServer()
	s.register()
	s.namespace("refused", nil)
	s.run("dry run", func(t *testing.T) {
		w := s.create(manifest{workloadID: workloadID{"Deployment", "refused", "rehearsed"}, labels: enabled("custom", "1")})
		var set metav1.OwnerReference
		eventually.True(t, "the replica set exists", func() bool {
			list, err := s.client.AppsV1().ReplicaSets("refused").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + w.name})
			if err != nil || len(list.Items) == 0 {
				return false
			}
			rs := &list.Items[0]
			set = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: number(true)}
			return true
		})
		for range 5 {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: set.Name + "-", Labels: map[string]string{"app": w.name}, OwnerReferences: []metav1.OwnerReference{set}},
				Spec:       manifest{workloadID: w}.template().Spec,
			}
			if _, err := s.client.CoreV1().Pods("refused").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
		}
		s.scale(w, 4)
		s.reaches(w, 1, 3)
		s.ended(w, 0, "")
	})
	s.run("quota", func(t *testing.T) {
		s.namespace("narrow", nil)
		quota := func(pods string) *corev1.ResourceQuota {
			return &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Name: "pods"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse(pods)}},
			}
		}
		quotas := s.client.CoreV1().ResourceQuotas("narrow")
		if _, err := quotas.Create(t.Context(), quota("2"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the quota is in force", func() bool {
			q, err := quotas.Get(t.Context(), "pods", metav1.GetOptions{})
			return err == nil && len(q.Status.Hard) > 0
		})
		w := s.create(manifest{workloadID: workloadID{"Deployment", "narrow", "web"}, replicas: 6, labels: enabled("custom", "3")})
		s.becomes(w, func(c counts) bool { return c.ready == 2 }, "as large as the quota allows")
		if _, err := quotas.Update(t.Context(), quota("20"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.reaches(w, 3, 3)
		if most := s.most(w, onDemandNode); most > 3 {
			t.Errorf("%s had %d pods for on-demand nodes at a time, want at most 3", w, most)
		}
	})
	s.run("a namespace that is left out", func(t *testing.T) {
		s.namespace("out", map[string]string{labelEnabled: "false"})
		w := s.create(manifest{workloadID: workloadID{"Deployment", "out", "web"}, replicas: 4, labels: enabled("all-in-on-demand", "")})
		s.becomes(w, func(c counts) bool { return c.complete() && c.otherLabels == 4 }, "complete without a split")
		s.sentinel("refused")
		s.ended(w, 0, "")
	})
	s.run("what is not asked for", func(t *testing.T) {
		w := s.create(manifest{workloadID: workloadID{"Deployment", "refused", "plain"}, replicas: 4})
		s.becomes(w, func(c counts) bool { return c.complete() && c.otherLabels == 4 }, "complete without a split")
		s.sentinel("refused")
		s.ended(w, 0, "")
	})
}
