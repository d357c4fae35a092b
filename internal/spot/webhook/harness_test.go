package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

const (
	testSecret = "s3cret"
	testUID    = types.UID("0f5a7c6e-uid")
)

var defaultLabel = spot.LabelOf(api.DefaultNodeTypeKey)

// TB is the common part of tests, benchmarks and property tests.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// fakeCluster assigns pods with a function, and records the requests.
type fakeCluster struct {
	assign func(context.Context, Creation) Assignment

	mu    sync.Mutex
	asked []Creation
}

func (c *fakeCluster) Secret() string { return testSecret }

func (c *fakeCluster) Assign(ctx context.Context, creation Creation) Assignment {
	c.mu.Lock()
	c.asked = append(c.asked, creation)
	c.mu.Unlock()
	return c.assign(ctx, creation)
}

// always assigns every pod the same type.
func always(a Assignment) *fakeCluster {
	return &fakeCluster{assign: func(context.Context, Creation) Assignment { return a }}
}

func toSpot() *fakeCluster     { return always(Assignment{Type: split.Spot, Label: defaultLabel}) }
func toOnDemand() *fakeCluster { return always(Assignment{Type: split.OnDemand, Label: defaultLabel}) }

// nowhere is a listener for servers that are called without a network.
type nowhere struct{ net.Listener }

// serverOf returns a server with one cluster, called a.
func serverOf(t TB, cluster Cluster) *Server {
	t.Helper()
	s, err := New(Options{
		Listener: nowhere{}, TLS: &tls.Config{MinVersion: tls.VersionTLS13},
		Clusters: func(name string) (Cluster, bool) { return cluster, name == "a" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func post(s *Server, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/clusters/a/"+testSecret+"/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// reviewOf returns a request about an object, as an API server writes it.
func reviewOf(t TB, operation admissionv1.Operation, object, old any) *admissionv1.AdmissionReview {
	t.Helper()
	kind := metav1.GroupVersionKind{Version: "v1"}
	switch object.(type) {
	case *corev1.Pod:
		kind.Kind = "Pod"
	case *corev1.ConfigMap:
		kind.Kind = "ConfigMap"
	case *appsv1.Deployment:
		kind.Group, kind.Kind = "apps", "Deployment"
	case *appsv1.StatefulSet:
		kind.Group, kind.Kind = "apps", "StatefulSet"
	default:
		t.Fatalf("no kind for %T", object)
	}
	raw := func(v any) runtime.RawExtension {
		if v == nil {
			return runtime.RawExtension{}
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: testUID, Kind: kind, Namespace: "shop", Operation: operation,
			Object: raw(object), OldObject: raw(old), DryRun: new(false),
		},
	}
}

// ask sends a request and parses the response, which must belong to it.
func ask(t TB, s *Server, path string, review *admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	w := post(s, path, string(body))
	return answerIn(t, w, review.Request.UID)
}

func answerIn(t TB, w *httptest.ResponseRecorder, uid types.UID) *admissionv1.AdmissionResponse {
	t.Helper()
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	if got.APIVersion != "admission.k8s.io/v1" || got.Kind != "AdmissionReview" || got.Response == nil || got.Response.UID != uid {
		t.Fatalf("no answer to the request: %s", w.Body)
	}
	if patched := got.Response.Patch != nil; patched != (got.Response.PatchType != nil && *got.Response.PatchType == admissionv1.PatchTypeJSONPatch) {
		t.Fatalf("patch without its type, or type without a patch: %s", w.Body)
	}
	return got.Response
}

// admit sends the creation of a pod, and returns the pod as it would be stored.
func admit(t TB, s *Server, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	review := reviewOf(t, admissionv1.Create, pod, nil)
	response := ask(t, s, "pods", review)
	if !response.Allowed || len(response.Warnings) > 0 {
		t.Fatalf("rejected, or admitted with warnings: %+v", response)
	}
	var out corev1.Pod
	if err := json.Unmarshal(applied(t, review.Request.Object.Raw, response), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// applied applies the patch in a response to a document.
func applied(t TB, document []byte, response *admissionv1.AdmissionResponse) []byte {
	t.Helper()
	if response.Patch == nil {
		return document
	}
	decoded, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := decoded.Apply(document)
	if err != nil {
		t.Fatalf("error %v in the patch %s", err, response.Patch)
	}
	return out
}

// podOf returns a pod that a ReplicaSet is about to create.
func podOf(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "web-5d4f-", Namespace: "shop", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f", UID: "rs", Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func rule(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func term(rules ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: rules}
}

// requiring returns an affinity with alternative terms.
func requiring(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

func sameJSON(t TB, a, b any) bool {
	t.Helper()
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	return string(x) == string(y)
}

// keysOf returns the sorted keys of a map.
func keysOf(m map[string][]string) []string { return slices.Sorted(maps.Keys(m)) }
