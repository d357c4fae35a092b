//go:build integration && gitops

package integration

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// TestGitOpsDecisionsInTheHub runs the manifests of examples/kubernetes-hub with the real ApplicationSet controller of Argo
// CD: its generator clusterDecisionResource follows the PlacementDecisions of Open Cluster Management's API.
func TestGitOpsDecisionsInTheHub(t *testing.T) {
	h := startHub(t)
	h.applyFile(filepath.Join("testdata", "hub", "placementdecisions.yaml"))
	h.applyFile(filepath.Join("..", "examples", "kubernetes-hub", "rbac.yaml"),
		"kind: ServiceAccount", "kind: User\n    apiGroup: rbac.authorization.k8s.io", "\n    namespace: scheduler", "")
	h.write("server.kubeconfig", []byte(h.kubeconfigIn(userServer).Reveal()))
	p := startServer(t, t.TempDir(), "--gitops-kubeconfig-file", filepath.Join(h.dir, "server.kubeconfig"), "--gitops-decisions", "ocm")
	for _, name := range []string{"berlin", "paris", "rome"} {
		put(p, &api.Cluster{Metadata: api.Metadata{Name: name + "-prod"}})
	}
	place := func(clusters ...string) {
		put(p, &api.Placement{Metadata: api.Metadata{Namespace: "argocd", Name: "web"}, Spec: api.PlacementSpec{ClusterNames: clusters, RescheduleAfter: "0s"}})
	}
	decisions := h.client.Resource(ocmDecisions).Namespace("argocd")
	decided := func(clusters ...string) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("the hub has the decision %v", clusters), func() bool {
			u, err := decisions.Get(t.Context(), "web-decision-1", metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			return err == nil && slices.Equal(slices.Sorted(slices.Values(ocmClusters(u))), clusters)
		})
	}
	// ask makes Argo CD read the decision.
	ask := func() {
		t.Helper()
		for _, text := range []string{`null`, `"true"`} {
			_, err := h.client.Resource(gitopsResources["ApplicationSet"]).Namespace("argocd").Patch(t.Context(), "web", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"argocd.argoproj.io/application-set-refresh":`+text+`}}}`), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	makes := func(clusters ...string) {
		t.Helper()
		want := make([]string, len(clusters))
		for i, cluster := range clusters {
			want[i] = "Application web-" + cluster
		}
		var asked time.Time
		eventually.True(t, fmt.Sprintf("there are Applications on %v", clusters), func() bool {
			if time.Since(asked) > 5*time.Second {
				ask()
				asked = time.Now()
			}
			return slices.Equal(slices.Sorted(maps.Keys(h.made())), want)
		})
	}

	place("paris-prod", "rome-prod")
	decided("paris-prod", "rome-prod")
	h.applyFile(filepath.Join("..", "examples", "kubernetes-hub", "applicationset.yaml"))
	makes("paris-prod", "rome-prod")
	before := h.made()
	place("berlin-prod", "rome-prod")
	decided("berlin-prod", "rome-prod")
	makes("berlin-prod", "rome-prod")
	if after := h.made(); after["Application web-rome-prod"] != before["Application web-rome-prod"] {
		t.Error("the Application of a cluster that stays was made anew")
	}

	// Nothing fits: the decision stays. Then somebody deletes it, and it comes back: the Applications stay all the time.
	before = h.made()
	place("nowhere")
	ask()
	decided("berlin-prod", "rome-prod")
	if err := decisions.Delete(t.Context(), "web-decision-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	said := func() string {
		u, err := h.client.Resource(gitopsResources["ApplicationSet"]).Namespace("argocd").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		return fmt.Sprint(conditions)
	}
	place("berlin-prod", "rome-prod")
	decided("berlin-prod", "rome-prod")
	makes("berlin-prod", "rome-prod")

	// The placement is deleted, and its decision with it: Argo CD says so, and keeps what it has made.
	if err := p.client.Delete(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "argocd", Name: "web"}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "Argo CD finds no decision", func() bool {
		_, err := decisions.Get(t.Context(), "web-decision-1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			ask()
		}
		return strings.Contains(said(), "no clusterDecisionResources found")
	})
	if after := h.made(); !maps.Equal(before, after) {
		t.Errorf("an Application was deleted or made anew: before %v, after %v", before, after)
	}
	none := int64(0)
	put(p, &api.Placement{Metadata: api.Metadata{Namespace: "argocd", Name: "web"}, Spec: api.PlacementSpec{NumberOfClusters: &none}})
	decided()
	makes()
}
