package webhook

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

var (
	ours     = rule(api.DefaultNodeTypeKey, "In", "on-demand")
	zone     = rule("topology.kubernetes.io/zone", "In", "a")
	arch     = rule("kubernetes.io/arch", "In", "amd64")
	nameRule = rule("metadata.name", "In", "n1")
)

// TestOnDemandIsRequiredInEveryTerm covers all forms of a pod's own affinity. Terms are alternatives, so that the rule
// must be added to all of them.
func TestOnDemandIsRequiredInEveryTerm(t *testing.T) {
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{nameRule}}
	byNameToo := byName
	byNameToo.MatchExpressions = []corev1.NodeSelectorRequirement{ours}
	for _, test := range []struct {
		name       string
		have, want *corev1.Affinity
	}{
		{"no affinity", nil, requiring(term(ours))},
		{"an affinity for pods only", &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}, &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{}, NodeAffinity: requiring(term(ours)).NodeAffinity,
		}},
		{"an empty affinity for nodes", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}, requiring(term(ours))},
		{"one term", requiring(term(zone)), requiring(term(zone, ours))},
		{"two terms", requiring(term(zone), term(arch)), requiring(term(zone, ours), term(arch, ours))},
		{"a term about fields", requiring(byName), requiring(byNameToo)},
		{"an empty term matches no node, and stays empty", requiring(term(), term(zone)), requiring(term(), term(zone, ours))},
		{"only empty terms", requiring(term(), term()), requiring(term(), term())},
		{"no terms", requiring(), requiring()},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := admit(t, serverOf(t, toOnDemand()), podOf(func(p *corev1.Pod) { p.Spec.Affinity = test.have }))
			if !sameJSON(t, got.Spec.Affinity, test.want) {
				t.Errorf("got %v\nwant %v", got.Spec.Affinity, test.want)
			}
			if got.Labels[spot.LabelAffinity] != "on-demand" || got.Annotations[spot.AnnotationAdmission] != string(testUID) {
				t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
			}
			if len(got.Spec.Tolerations) > 0 {
				t.Errorf("unexpected tolerations %v", got.Spec.Tolerations)
			}
		})
	}
}

// TestPinned checks which pods choose their node type themselves. They count as this type and get no affinity, which
// could only contradict theirs.
func TestPinned(t *testing.T) {
	key := api.DefaultNodeTypeKey
	gke, aks := "cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority"
	selecting := func(key, value string) corev1.PodSpec {
		return corev1.PodSpec{NodeSelector: map[string]string{key: value}}
	}
	needing := func(terms ...corev1.NodeSelectorTerm) corev1.PodSpec {
		return corev1.PodSpec{Affinity: requiring(terms...)}
	}
	for _, test := range []struct {
		name    string
		key     string
		spec    corev1.PodSpec
		want    split.NodeType
		touched bool
	}{
		{"no constraints", key, corev1.PodSpec{}, split.Unset, true},
		{"other label", key, selecting("disk", "ssd"), split.Unset, true},
		{"selects spot", key, selecting(key, "spot"), split.Spot, false},
		{"selects on-demand", key, selecting(key, "on-demand"), split.OnDemand, false},
		{"selects an unknown value", key, selecting(key, "other"), split.Unset, false},
		{"needs spot", key, needing(term(rule(key, "In", "spot"))), split.Spot, false},
		{"needs spot in one of two terms", key, needing(term(rule(key, "In", "spot")), term(zone)), split.Unset, true},
		{"needs spot in both terms", key, needing(term(rule(key, "In", "spot"), arch), term(zone, rule(key, "NotIn", "on-demand"))), split.Spot, false},
		{"needs either", key, needing(term(rule(key, "In", "spot", "on-demand"))), split.Unset, true},
		{"needs one type each", key, needing(term(rule(key, "In", "spot")), term(rule(key, "In", "on-demand"))), split.Unset, true},
		{"not on spot", key, needing(term(rule(key, "NotIn", "spot"))), split.OnDemand, false},
		{"needs the label", key, needing(term(rule(key, "Exists"))), split.Unset, true},
		{"needs the absence of the label", key, needing(term(rule(key, "DoesNotExist"))), split.Unset, false},
		{"selector and term contradict", key, corev1.PodSpec{NodeSelector: map[string]string{key: "spot"}, Affinity: requiring(term(rule(key, "In", "on-demand")))}, split.Unset, false},
		{"an empty term adds nothing", key, needing(term(), term(rule(key, "In", "spot"))), split.Spot, false},
		{"numeric operator", key, needing(term(rule(key, "Gt", "3"))), split.Unset, false},
		{"GKE: selects spot", gke, selecting(gke, "true"), split.Spot, false},
		{"GKE: needs the label", gke, needing(term(rule(gke, "Exists"))), split.Spot, false},
		{"GKE: needs the absence of the label", gke, needing(term(rule(gke, "DoesNotExist"))), split.OnDemand, false},
		{"GKE: not on spot", gke, needing(term(rule(gke, "NotIn", "true"))), split.OnDemand, false},
		{"AKS: selects regular", aks, selecting(aks, "regular"), split.OnDemand, false},
		{"AKS: needs either", aks, needing(term(rule(aks, "In", "regular", "spot"))), split.Unset, true},
		{"Karpenter: reserved is on-demand", "karpenter.sh/capacity-type", selecting("karpenter.sh/capacity-type", "reserved"), split.OnDemand, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			label := spot.LabelOf(test.key)
			for _, assigned := range []split.NodeType{split.OnDemand, split.Spot} {
				var pinned split.NodeType
				cluster := &fakeCluster{assign: func(_ context.Context, c Creation) Assignment {
					pinned = c.Pinned(label)
					return Assignment{Type: assigned, Label: label}
				}}
				got := admit(t, serverOf(t, cluster), podOf(func(p *corev1.Pod) { p.Spec = test.spec }))
				if pinned != test.want {
					t.Errorf("pinned to %q, want %q", pinned, test.want)
				}
				if untouched := reflect.DeepEqual(got.Spec, test.spec); untouched == test.touched {
					t.Errorf("as %s: unexpected spec %+v", assigned, got.Spec)
				}
				if got.Labels[spot.LabelAffinity] != string(assigned) {
					t.Errorf("unexpected labels %v", got.Labels)
				}
			}
		})
	}
}

// TestManyAffinityValues admits a pod that is designed to be slow.
func TestManyAffinityValues(t *testing.T) {
	const gke = "cloud.google.com/gke-spot"
	terms := make([]corev1.NodeSelectorTerm, 5000)
	for i := range terms {
		terms[i] = term(rule(gke, "In", strings.Repeat("x", i%50+1)), rule(gke, "DoesNotExist"))
	}
	cluster := always(Assignment{Type: split.OnDemand, Label: spot.LabelOf(gke)})
	got := admit(t, serverOf(t, cluster), podOf(func(p *corev1.Pod) { p.Spec.Affinity = requiring(terms...) }))
	if !sameJSON(t, got.Spec.Affinity, requiring(terms...)) {
		t.Error("the terms of a pod that fits no node were modified")
	}
}

func TestSpotNodesAreTolerated(t *testing.T) {
	key := api.DefaultNodeTypeKey
	added := corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: "spot", Effect: corev1.TaintEffectNoSchedule}
	for _, test := range []struct {
		name   string
		have   []corev1.Toleration
		covers bool
	}{
		{"none", nil, false},
		{"other key", []corev1.Toleration{{Key: "gpu", Operator: "Exists"}}, false},
		{"other value", []corev1.Toleration{{Key: key, Value: "on-demand"}}, false},
		{"other effect", []corev1.Toleration{{Key: key, Value: "spot", Effect: "NoExecute"}}, false},
		{"same toleration", []corev1.Toleration{added}, true},
		{"all effects", []corev1.Toleration{{Key: key, Value: "spot"}}, true},
		{"all values", []corev1.Toleration{{Key: "gpu"}, {Key: key, Operator: "Exists", Effect: "NoSchedule"}}, true},
		{"all taints", []corev1.Toleration{{Operator: "Exists"}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := test.have
			if !test.covers {
				want = append(append([]corev1.Toleration{}, test.have...), added)
			}
			got := admit(t, serverOf(t, toSpot()), podOf(func(p *corev1.Pod) { p.Spec.Tolerations = test.have }))
			if !reflect.DeepEqual(got.Spec.Tolerations, want) {
				t.Errorf("got %v, want %v", got.Spec.Tolerations, want)
			}
		})
	}
}

// TestLabelsAndAnnotationsOfPods checks which labels and annotations of a new pod are kept.
func TestLabelsAndAnnotationsOfPods(t *testing.T) {
	cost := split.AnnotationDeletionCost
	for _, test := range []struct {
		name                    string
		labels, annotations     map[string]string
		cost                    *int32
		wantLabels, wantAnnotat map[string]string
	}{
		{
			"none of either", nil, nil, nil,
			map[string]string{spot.LabelAffinity: "spot"}, map[string]string{spot.AnnotationAdmission: string(testUID)},
		},
		{
			"others stay", map[string]string{"app": "web"}, map[string]string{"a~b/c": "d"}, new(int32(-100)),
			map[string]string{"app": "web", spot.LabelAffinity: "spot"},
			map[string]string{"a~b/c": "d", spot.AnnotationAdmission: string(testUID), cost: "-100"},
		},
		{
			"ours of a template are replaced", map[string]string{spot.LabelAffinity: "on-demand"}, map[string]string{spot.AnnotationAdmission: "old"}, nil,
			map[string]string{spot.LabelAffinity: "spot"}, map[string]string{spot.AnnotationAdmission: string(testUID)},
		},
		{
			"the user's deletion cost stays", nil, map[string]string{cost: "7"}, new(int32(100)),
			map[string]string{spot.LabelAffinity: "spot"}, map[string]string{spot.AnnotationAdmission: string(testUID), cost: "7"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := always(Assignment{Type: split.Spot, Label: defaultLabel, Cost: test.cost})
			got := admit(t, serverOf(t, cluster), podOf(func(p *corev1.Pod) { p.Labels, p.Annotations = test.labels, test.annotations }))
			if !reflect.DeepEqual(got.Labels, test.wantLabels) || !reflect.DeepEqual(got.Annotations, test.wantAnnotat) {
				t.Errorf("labels %v, annotations %v, want %v, %v", got.Labels, got.Annotations, test.wantLabels, test.wantAnnotat)
			}
		})
	}
}

// TestLeftAlone shows which requests are none of ours: nobody is asked about them.
func TestLeftAlone(t *testing.T) {
	deployment := reviewOf(t, admissionv1.Create, podOf(nil), nil)
	deployment.Request.Kind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	binding := reviewOf(t, admissionv1.Create, podOf(nil), nil)
	binding.Request.SubResource = "binding"
	owned := func(change func(*metav1.OwnerReference)) *admissionv1.AdmissionReview {
		return reviewOf(t, admissionv1.Create, podOf(func(p *corev1.Pod) { change(&p.OwnerReferences[0]) }), nil)
	}
	for name, review := range map[string]*admissionv1.AdmissionReview{
		"an update":            reviewOf(t, admissionv1.Update, podOf(nil), podOf(nil)),
		"a deletion":           reviewOf(t, admissionv1.Delete, podOf(nil), podOf(nil)),
		"another kind":         deployment,
		"a part of a pod":      binding,
		"of a Job":             owned(func(o *metav1.OwnerReference) { o.APIVersion, o.Kind = "batch/v1", "Job" }),
		"of a DaemonSet":       owned(func(o *metav1.OwnerReference) { o.Kind = "DaemonSet" }),
		"of another's set":     owned(func(o *metav1.OwnerReference) { o.APIVersion = "apps.kruise.io/v1" }),
		"an owner, no control": owned(func(o *metav1.OwnerReference) { o.Controller = nil }),
	} {
		t.Run(name, func(t *testing.T) {
			cluster := toOnDemand()
			response := ask(t, serverOf(t, cluster), "pods", review)
			if !response.Allowed || response.Patch != nil || len(response.Warnings) > 0 || len(cluster.asked) > 0 {
				t.Errorf("response %+v, requests about %v", response, cluster.asked)
			}
		})
	}
}

func TestAssignRequest(t *testing.T) {
	cluster := toSpot()
	s := serverOf(t, cluster)
	stateful := podOf(func(p *corev1.Pod) {
		p.Name, p.GenerateName, p.Namespace = "db-0", "", ""
		p.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "sts", Controller: new(true)}
	})
	review := reviewOf(t, admissionv1.Create, stateful, nil)
	review.Request.DryRun = new(true)
	if response := ask(t, s, "pods", review); response.Patch == nil {
		t.Errorf("the answer to a dry run is different: %+v", response)
	}
	ask(t, s, "pods", reviewOf(t, admissionv1.Create, podOf(nil), nil))
	for i := range cluster.asked {
		cluster.asked[i].Pinned = nil
	}
	want := []Creation{
		{UID: testUID, Name: "db-0", Namespace: "shop", Owner: stateful.OwnerReferences[0], Labels: map[string]string{"app": "web"}, DryRun: true},
		{UID: testUID, GenerateName: "web-5d4f-", Namespace: "shop", Owner: podOf(nil).OwnerReferences[0], Labels: map[string]string{"app": "web"}},
	}
	if !reflect.DeepEqual(cluster.asked, want) {
		t.Errorf("got %+v\nwant %+v", cluster.asked, want)
	}
}

// TestSlowAssignment checks that a pod is admitted unchanged, and in time, if there is no assignment in time.
func TestSlowAssignment(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": 2 * time.Second, "?timeout=3s": 2 * time.Second, "?timeout=30s": 2 * time.Second,
		"?timeout=2s": 1500 * time.Millisecond, "?timeout=1s": 500 * time.Millisecond, "?timeout=600ms": 300 * time.Millisecond,
		"?timeout=-1s": 2 * time.Second, "?timeout=soon": 2 * time.Second,
	} {
		t.Run(query, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &fakeCluster{assign: func(ctx context.Context, _ Creation) Assignment {
					<-ctx.Done()
					return Assignment{}
				}}
				started := time.Now()
				response := ask(t, serverOf(t, cluster), "pods"+query, reviewOf(t, admissionv1.Create, podOf(nil), nil))
				if !response.Allowed || response.Patch != nil {
					t.Errorf("got %+v", response)
				}
				if took := time.Since(started); took != want {
					t.Errorf("it took %v, want %v", took, want)
				}
			})
		})
	}
}

// TestUnreadablePods checks that invalid pods are admitted: at worst, one is replaced later.
func TestUnreadablePods(t *testing.T) {
	good, err := json.Marshal(podOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string]string{
		"none":                    `null`,
		"a list":                  `[]`,
		"a label that is a count": strings.Replace(string(good), `"app":"web"`, `"app":7`, 1),
		"no spec":                 `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","controller":true}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":` + object + `,"uid":"u"}}`
			response := answerIn(t, post(serverOf(t, toSpot()), "pods", body), "u")
			if !response.Allowed || response.Patch != nil || (len(response.Warnings) == 0) != (name == "none") {
				t.Errorf("got %+v", response)
			}
		})
	}
}
