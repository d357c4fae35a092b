//go:build integration && gitops

package integration

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/proxytest"
)

// kueueConfiguration is that of the guide, with addresses and files of the test.
const kueueConfiguration = `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
multiKueue: {dispatcherName: scheduler/multikueue}
integrations: {frameworks: [batch/job], labelKeysToCopy: [scheduler/placement]}
leaderElection: {leaderElect: false}
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %s, certDir: %q}
featureGates: {VisibilityOnDemand: false}
`

// kueuePrepared is what the installation of Kueue makes besides its definitions. Its webhooks are not called.
const kueuePrepared = `
apiVersion: v1
kind: Namespace
metadata: {name: kueue-system}
---
apiVersion: v1
kind: Secret
metadata: {name: kueue-webhook-server-cert, namespace: kueue-system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: kueue-validating-webhook-configuration}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kueue-mutating-webhook-configuration}
`

// kueueQueues are the queues of the hub. Those of the clusters are the test's part.
const kueueQueues = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: berlin}
spec: {clusterSource: {kubeConfig: {location: BERLIN, locationType: Path}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: paris}
spec: {clusterSource: {kubeConfig: {location: PARIS, locationType: Path}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: fleet}
spec: {clusters: [berlin, paris]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: fleet}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: fleet}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: default, resources: [{name: cpu, nominalQuota: "9"}]}]
  admissionChecksStrategy: {admissionChecks: [{name: fleet}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: batch, namespace: shop}
spec: {clusterQueue: all}
`

func init() {
	for kind, resource := range map[string]string{
		"ResourceFlavor": "resourceflavors", "ClusterQueue": "clusterqueues", "LocalQueue": "localqueues", "AdmissionCheck": "admissionchecks",
		"MultiKueueConfig": "multikueueconfigs", "MultiKueueCluster": "multikueueclusters",
	} {
		gitopsResources[kind] = kueueWorkloads.GroupVersion().WithResource(resource)
	}
	gitopsResources["Job"] = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	for kind, resource := range map[string]string{
		"ValidatingWebhookConfiguration": "validatingwebhookconfigurations", "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
	} {
		gitopsResources[kind] = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
	}
}

// defineKueue applies Kueue's definitions. With conversion, they have the webhook into which Kueue writes its authority;
// it is never called, because all objects have the version in which they are stored.
func (h *hub) defineKueue(conversion bool) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(testbedBinary(h.t, "kueue-crds", "scripts/build-kueue.sh"), "*.yaml"))
	if err != nil || len(files) == 0 {
		h.t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			h.t.Fatal(err)
		}
		object := map[string]any{}
		if err := yaml.Unmarshal(text, &object); err != nil {
			h.t.Fatal(file, err)
		}
		versions, _, err := unstructured.NestedSlice(object, "spec", "versions")
		if err != nil {
			h.t.Fatal(file, err)
		}
		if conversion && len(versions) > 1 {
			object["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
			}}
		}
		if text, err = yaml.Marshal(object); err != nil {
			h.t.Fatal(err)
		}
		h.apply(string(text))
	}
}

// runKueue starts Kueue, and gives it the certificate that it makes, as a kubelet does.
func (h *hub) runKueue() {
	h.t.Helper()
	h.defineKueue(true)
	h.apply(kueuePrepared)
	certificates := filepath.Join(h.dir, "kueue")
	if err := os.Mkdir(certificates, 0o700); err != nil {
		h.t.Fatal(err)
	}
	address := proxytest.FreeAddress(h.t)
	h.write("kueue.yaml", fmt.Appendf(nil, kueueConfiguration, address[strings.LastIndex(address, ":")+1:], certificates))
	h.write("controllers.kubeconfig", []byte(h.kubeconfig("controllers").Reveal()))
	h.run("kueue", "scripts/build-kueue.sh", []string{"KUBECONFIG=" + filepath.Join(h.dir, "controllers.kubeconfig")}, "--config="+filepath.Join(h.dir, "kueue.yaml"))
	data := map[string]string{}
	eventually.True(h.t, "Kueue has made its certificate", func() bool {
		secret, err := h.client.Resource(gitopsResources["Secret"]).Namespace("kueue-system").Get(h.t.Context(), "kueue-webhook-server-cert", metav1.GetOptions{})
		if err != nil {
			h.t.Fatal(err)
		}
		data, _, _ = unstructured.NestedStringMap(secret.Object, "data")
		return data["tls.crt"] != ""
	})
	for name, encoded := range data {
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			h.t.Fatal(err)
		}
		h.write(filepath.Join("kueue", name), content)
	}
}

// only returns the only Workload in the namespace of the test whose Job has a name, or nil.
func (h *hub) only(job string) *unstructured.Unstructured {
	h.t.Helper()
	list, err := h.client.Resource(kueueWorkloads).Namespace("shop").List(h.t.Context(), metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].GetName(), "job-"+job+"-") && list.Items[i].GetDeletionTimestamp() == nil {
			return &list.Items[i]
		}
	}
	return nil
}

// TestGitOpsKueueFollowsDecisions runs the real Kueue with the Job of the examples, and with exactly the rights of the guide: it
// sends the Job to the clusters of the decision, follows it until one of them admits the Job, and then no longer.
func TestGitOpsKueueFollowsDecisions(t *testing.T) {
	h := newHub(t)
	workers := map[string]*hub{}
	for _, name := range []string{"berlin", "paris"} {
		w := newHub(t)
		w.defineKueue(false)
		w.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}")
		workers[name] = w
		h.write(name+".kubeconfig", []byte(w.kubeconfig("kueue").Reveal()))
	}
	h.runKueue()
	h.apply(strings.NewReplacer("BERLIN", filepath.Join(h.dir, "berlin.kubeconfig"), "PARIS", filepath.Join(h.dir, "paris.kubeconfig")).Replace(kueueQueues))
	h.applyFile(filepath.Join("..", "examples", "kubernetes-hub", "rbac.yaml"),
		"kind: ServiceAccount", "kind: User\n    apiGroup: rbac.authorization.k8s.io", "\n    namespace: scheduler", "")
	h.write("server.kubeconfig", []byte(h.kubeconfigIn(userServer).Reveal()))
	p := startServer(t, t.TempDir(), "--gitops-kubeconfig-file", filepath.Join(h.dir, "server.kubeconfig"), "--gitops-multikueue")
	for name := range workers {
		put(p, &api.Cluster{Metadata: api.Metadata{Name: name}})
	}
	place := func(cluster string) {
		put(p, &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Spec: api.PlacementSpec{ClusterNames: []string{cluster}, RescheduleAfter: "0s"}})
	}
	// sent waits until a Job is nominated for a cluster, and its Workload is there and nowhere else.
	sent := func(job, cluster string) {
		t.Helper()
		began := time.Now()
		nominated := time.Duration(0)
		eventually.True(t, fmt.Sprintf("%s is sent to %s only", job, cluster), func() bool {
			u := h.only(job)
			if u == nil {
				return false
			}
			names, _, _ := unstructured.NestedStringSlice(u.Object, "status", "nominatedClusterNames")
			if nominated == 0 && slices.Equal(names, []string{cluster}) {
				nominated = time.Since(began)
			}
			for name, w := range workers {
				if (w.only(job) != nil) != (name == cluster) {
					return false
				}
			}
			return slices.Equal(names, []string{cluster})
		})
		t.Logf("%s: %s was nominated after %s, and had the Workload after %s", job, cluster, nominated.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}

	place("berlin")
	job := filepath.Join("..", "examples", "kubernetes-hub", "job.yaml")
	h.applyFile(job)
	sent("report", "berlin")
	place("paris")
	sent("report", "paris")
	// No cluster fits: it stays where it is.
	put(p, &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Spec: api.PlacementSpec{LabelConstraints: []string{"tier is none"}, RescheduleAfter: "0s"}})
	eventually.True(t, "it is said", func() bool { return strings.Contains(p.stderr.String(), "stay as they are") })
	sent("report", "paris")

	// The test is Kueue in Paris: it admits the Workload.
	u := workers["paris"].only("report")
	status := reserved("none")
	delete(status, "admissionChecks")
	conditions := status["conditions"].([]any)
	admitted := maps.Clone(conditions[0].(map[string]any))
	admitted["type"], admitted["reason"] = "Admitted", "Admitted"
	status["conditions"] = append(conditions, admitted)
	u.Object["status"] = status
	if _, err := workers["paris"].client.Resource(kueueWorkloads).Namespace("shop").UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "Kueue has taken the nomination back", func() bool {
		u := h.only("report")
		cluster, _, _ := unstructured.NestedString(u.Object, "status", "clusterName")
		_, nominated, _ := unstructured.NestedStringSlice(u.Object, "status", "nominatedClusterNames")
		return cluster == "paris" && !nominated
	})

	// A later move concerns later Jobs only.
	place("berlin")
	h.applyFile(job, "name: report\n  namespace", "name: later\n  namespace")
	sent("later", "berlin")
	u = h.only("report")
	if cluster, _, _ := unstructured.NestedString(u.Object, "status", "clusterName"); cluster != "paris" || workers["paris"].only("report") == nil || workers["berlin"].only("report") != nil {
		t.Errorf("the Job that was admitted has moved: %v", u.Object["status"])
	}
}
