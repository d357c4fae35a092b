//go:build integration && gitops

package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/proxytest"
)

// gitopsResources are the resources of everything in the manifests.
var gitopsResources = map[string]schema.GroupVersionResource{
	"Namespace":                {Version: "v1", Resource: "namespaces"},
	"Secret":                   {Version: "v1", Resource: "secrets"},
	"ConfigMap":                {Version: "v1", Resource: "configmaps"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"ClusterRole":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":       {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"AppProject":               {Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"},
	"Application":              {Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"},
	"ApplicationSet":           {Group: "argoproj.io", Version: "v1alpha1", Resource: "applicationsets"},
	"ResourceSet":              {Group: "fluxcd.controlplane.io", Version: "v1", Resource: "resourcesets"},
	"ResourceSetInputProvider": {Group: "fluxcd.controlplane.io", Version: "v1", Resource: "resourcesetinputproviders"},
	"Kustomization":            {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
}

// kustomizations defines the resource of the Kustomizations that the example makes, in its shortest form.
const kustomizations = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}
spec:
  group: kustomize.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: Kustomization, listKind: KustomizationList, plural: kustomizations, singular: kustomization}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// prepared is what Argo CD's installation and its users have made before.
const prepared = `
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: c2VjcmV0}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{name: "*", namespace: "*"}]
`

// argocdCluster is a cluster that Argo CD knows.
const argocdCluster = `
apiVersion: v1
kind: Secret
metadata: {name: %[1]s, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData: {name: %[1]s-prod, server: "https://%[1]s:6443", config: "{}"}
`

// hub is a Kubernetes cluster with GitOps controllers.
type hub struct {
	*control
	client dynamic.Interface
}

// newHub starts one without controllers.
func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{control: startControl(t)}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(h.kubeconfig(userTest).Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // -1 = no limit
	if h.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return h
}

// startHub starts one with Argo CD's ApplicationSet controller and flux-operator.
func startHub(t *testing.T) *hub {
	t.Helper()
	h := newHub(t)
	for _, definitions := range []struct{ directory, script string }{{"argocd-crds", "scripts/build-argocd.sh"}, {"flux-operator-crds", "scripts/build-flux-operator.sh"}} {
		files, err := filepath.Glob(filepath.Join(testbedBinary(t, definitions.directory, definitions.script), "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal(definitions, files, err)
		}
		for _, file := range files {
			h.applyFile(file)
		}
	}
	h.apply(kustomizations)
	h.apply(prepared)
	for _, name := range []string{"berlin", "paris", "rome"} {
		h.apply(fmt.Sprintf(argocdCluster, name))
	}
	h.write("controllers.kubeconfig", []byte(h.kubeconfig("controllers").Reveal()))
	kubeconfig := "KUBECONFIG=" + filepath.Join(h.dir, "controllers.kubeconfig")
	h.run("argocd-applicationset-controller", "scripts/build-argocd.sh", []string{kubeconfig, "HOME=" + h.dir},
		"--namespace=argocd", "--metrics-addr=0", "--probe-addr=0", "--webhook-addr="+proxytest.FreeAddress(t))
	h.run("flux-operator", "scripts/build-flux-operator.sh", []string{kubeconfig, "GODEBUG=fips140=on", "RUNTIME_NAMESPACE=flux-system"},
		"--enable-leader-election=false", "--web-server-port=0", "--metrics-addr=0", "--health-addr=0", "--storage-path="+h.dir)
	return h
}

// run starts one of its controllers, which is stopped at the end of the test.
func (h *hub) run(name, script string, environment []string, args ...string) {
	h.t.Helper()
	output := &logtest.Buffer{}
	cmd := exec.Command(testbedBinary(h.t, name, script), args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			h.t.Error(err)
		}
		_ = cmd.Wait() // it was killed
		if h.t.Failed() {
			h.t.Logf("the end of the log of %s:\n%s", name, output.Tail())
		}
	})
}

func (h *hub) applyFile(file string, replace ...string) {
	h.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	h.apply(strings.NewReplacer(replace...).Replace(string(text)))
}

// apply creates the objects of a manifest. A resource may have been defined just now.
func (h *hub) apply(manifest string) {
	h.t.Helper()
	for part := range strings.SplitSeq(manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil || object.GetKind() == "" {
			h.t.Fatalf("%v in %s", err, part)
		}
		resource, ok := gitopsResources[object.GetKind()]
		if !ok {
			h.t.Fatalf("the test does not know the resource of %s", object.GetKind())
		}
		eventually.True(h.t, object.GetKind()+" "+object.GetName()+" is created", func() bool {
			_, err := h.client.Resource(resource).Namespace(object.GetNamespace()).Create(h.t.Context(), object, metav1.CreateOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				h.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
			return err == nil
		})
	}
}

// made returns the UIDs of what the controllers have made, by kind and name.
func (h *hub) made() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	for _, kind := range []string{"Application", "Kustomization"} {
		list, err := h.client.Resource(gitopsResources[kind]).Namespace("").List(h.t.Context(), metav1.ListOptions{})
		if err != nil {
			h.t.Fatal(err)
		}
		for i := range list.Items {
			one := &list.Items[i]
			if one.GetDeletionTimestamp() == nil {
				all[kind+" "+one.GetName()] = string(one.GetUID())
				continue
			}
			// Argo CD's application controller, which the test plays, lets go of an Application when nothing of it is left.
			_, err := h.client.Resource(gitopsResources[kind]).Namespace(one.GetNamespace()).
				Patch(h.t.Context(), one.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				h.t.Fatal(err)
			}
		}
	}
	return all
}

// follows waits until the controllers have made something for exactly these clusters, and returns how long each took.
func (h *hub) follows(since time.Time, clusters ...string) map[string]time.Duration {
	h.t.Helper()
	took := map[string]time.Duration{}
	eventually.True(h.t, fmt.Sprintf("the controllers follow to %v", clusters), func() bool {
		made := slices.Sorted(maps.Keys(h.made()))
		for _, kind := range []string{"Application", "Kustomization"} {
			want := make([]string, len(clusters))
			for i, cluster := range clusters {
				want[i] = kind + " web-" + cluster
			}
			got := slices.DeleteFunc(slices.Clone(made), func(one string) bool { return !strings.HasPrefix(one, kind) })
			if slices.Equal(got, want) && took[kind] == 0 {
				took[kind] = time.Since(since)
			}
		}
		return len(took) == 2
	})
	return took
}

// demand makes both controllers ask, as our refresh does.
func (h *hub) demand() {
	h.t.Helper()
	patch := func(kind, namespace, text string) {
		_, err := h.client.Resource(gitopsResources[kind]).Namespace(namespace).Patch(h.t.Context(), "web", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	patch("ApplicationSet", "argocd", `{"metadata":{"annotations":{"argocd.argoproj.io/application-set-refresh":null}}}`)
	patch("ApplicationSet", "argocd", `{"metadata":{"annotations":{"argocd.argoproj.io/application-set-refresh":"true"}}}`)
	patch("ResourceSetInputProvider", "flux-system", fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano)))
}

// said returns what the controllers show to their users: the condition of the ApplicationSet about errors, and that of
// the ResourceSetInputProvider.
func (h *hub) said() (argocd, flux string) {
	h.t.Helper()
	read := func(kind, namespace, condition string) string {
		object, err := h.client.Resource(gitopsResources[kind]).Namespace(namespace).Get(h.t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			h.t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, one := range conditions {
			if c, ok := one.(map[string]any); ok && c["type"] == condition {
				return fmt.Sprint(c["status"], " ", c["message"])
			}
		}
		return ""
	}
	return read("ApplicationSet", "argocd", "ErrorOccurred"), read("ResourceSetInputProvider", "flux-system", "Ready")
}

// TestGitOpsControllersFollowDecisions runs the manifests of examples/argocd and examples/flux with the real controllers:
// what they make follows a decision as soon as it moves, and nothing is deleted while nobody can say where it should be.
func TestGitOpsControllersFollowDecisions(t *testing.T) {
	h := startHub(t)
	for _, directory := range []string{"argocd", "flux"} {
		roles := strings.NewReplacer("name: scheduler-gitops", "name: scheduler-"+directory, "kind: ServiceAccount", "kind: User\n    apiGroup: rbac.authorization.k8s.io", "\n    namespace: scheduler", "")
		text, err := os.ReadFile(filepath.Join("..", "examples", directory, "refresh.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		h.apply(roles.Replace(string(text)))
	}
	// With exactly the rights of the examples.
	h.write("server.kubeconfig", []byte(h.kubeconfigIn(userServer).Reveal()))
	etcd := proxytest.Start(t, strings.TrimPrefix(startEtcd(t), "http://"))
	listen := proxytest.FreeAddress(t)
	start := func() *process {
		return startCommand(t, serverBinary, "serve", "--listen", listen, "--etcd-endpoints", etcd.Address(), "--key-file", filepath.Join(h.dir, "seal.key"),
			"--lease", "3s", "--gitops-kubeconfig-file", filepath.Join(h.dir, "server.kubeconfig"))
	}
	p := start()
	token := func(role string, namespaces ...string) string {
		var created struct {
			Token string `json:"token"`
		}
		if err := p.client.Call(t.Context(), http.MethodPost, "/v1/tokens", map[string]any{"role": role, "namespaces": namespaces}, &created); err != nil || created.Token == "" {
			t.Fatalf("create a token: %v %+v", err, created)
		}
		return created.Token
	}
	admin := token("admin")
	login := func() {
		var err error
		if p.client, err = client.New(client.Options{Endpoint: p.url, MaxRetries: -1, Token: api.NewSecret(admin)}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.client.Close)
	}
	login()
	viewer := token("viewer", "shop")

	// The configuration in examples/*/main.tf.
	prices := func(berlin, paris, rome float64) {
		put(p, &api.MetricsProvider{Metadata: api.Metadata{Namespace: "shop", Name: "prices"}, Spec: api.MetricsProviderSpec{
			Type: "static", Static: &api.StaticSpec{Metrics: map[string]float64{"berlin": berlin, "paris": paris, "rome": rome}},
		}})
	}
	prices(0.3, 0.2, 0.4)
	zero, one := 0.0, 1.0
	for _, name := range []string{"berlin", "paris", "rome"} {
		put(p, &api.Metric{Metadata: api.Metadata{Namespace: "shop", Name: "price-" + name}, Spec: api.MetricSpec{
			Min: &zero, Max: &one, Direction: "descending", MetricsProvider: api.MetricProviderRef{Name: "prices", Metric: name},
		}})
		put(p, &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{"tier": "prod"}}, Spec: api.ClusterSpec{
			Region: "eu", Claims: map[string]string{"argocd": name + "-prod"}, Metrics: []api.MetricRef{{Name: "price-" + name, Namespace: "shop", Weight: number(1.0)}},
		}})
	}
	place := func(wanted int64, tier string) *api.Placement {
		return put(p, &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Spec: api.PlacementSpec{
			NumberOfClusters: &wanted, LabelConstraints: []string{"tier is " + tier}, RescheduleAfter: "0s", Metrics: &api.MetricsStrategy{Stickiness: &zero},
		}})
	}
	web := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	place(1, "prod")
	for directory, file := range map[string]string{"argocd": "applicationset.yaml", "flux": "resourceset.yaml"} {
		h.applyFile(filepath.Join("..", "examples", directory, file), "https://scheduler.example.com:8665", "http://"+listen, "token: TOKEN", "token: "+viewer,
			"  type: ExternalService", "  type: ExternalService\n  insecure: true")
	}
	h.follows(time.Now(), "paris")

	// asked waits until both controllers have got a status from the server.
	asked := func(status string) {
		t.Helper()
		before := p.answers(t, admin, status)
		var demanded time.Time
		eventually.True(t, "both controllers are answered "+status, func() bool {
			if time.Since(demanded) > time.Second {
				h.demand()
				demanded = time.Now()
			}
			now := p.answers(t, admin, status)
			return now["argocd"] > before["argocd"] && now["flux"] > before["flux"]
		})
	}
	// stays checks that everything is as it was, although the controllers have asked.
	stays := func(what string, before map[string]string) {
		t.Helper()
		if after := h.made(); !maps.Equal(before, after) {
			t.Errorf("%s: something was deleted or made: before %v, after %v", what, before, after)
		}
	}

	t.Run("a metric changes", func(t *testing.T) {
		for i, cluster := range []string{"berlin", "rome", "paris", "berlin", "paris"} {
			figures := map[string]float64{"berlin": 0.5, "paris": 0.5, "rome": 0.5}
			figures[cluster] = 0.1
			prices(figures["berlin"], figures["paris"], figures["rome"])
			eventually.True(t, "the decision moves to "+cluster, func() bool {
				return slices.Equal(get[*api.Placement](p, web).Status.Clusters, []string{cluster})
			})
			moved := *get[*api.Placement](p, web).Status.ScheduledAt
			took := h.follows(moved, cluster)
			t.Logf("move %d to %s: Application after %s, Kustomization after %s", i, cluster, took["Application"].Round(time.Millisecond), took["Kustomization"].Round(time.Millisecond))
		}
	})
	t.Run("nothing fits", func(t *testing.T) {
		before := h.made()
		place(1, "none")
		asked("503")
		stays("nothing fits", before)
		eventually.True(t, "the ApplicationSet says why", func() bool {
			argocd, flux := h.said()
			return strings.Contains(argocd, `placement "shop/web" has no clusters: `) && strings.HasPrefix(flux, "False")
		})
		argocd, flux := h.said()
		t.Logf("Argo CD says %q, Flux says %q", argocd, flux)
		place(1, "prod")
		h.follows(time.Now(), "paris")
		stays("it fits again", before)
	})
	t.Run("the name is unknown", func(t *testing.T) {
		before := h.made()
		if err := p.client.Delete(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		asked("404")
		stays("the placement is deleted", before)
		place(1, "prod")
		asked("200")
		stays("the placement is there again", before)
	})
	t.Run("the store is away", func(t *testing.T) {
		before := h.made()
		etcd.Stall(proxytest.ToClient, proxytest.ToServer)
		asked("503")
		stays("the store is away", before)
		etcd.Pass(proxytest.ToClient, proxytest.ToServer)
		asked("200")
		stays("the store is back", before)
	})
	t.Run("the server is away and starts", func(t *testing.T) {
		before := h.made()
		for range 3 {
			p.kill()
			h.demand()
			eventually.True(t, "Flux has noticed", func() bool {
				_, flux := h.said()
				return strings.HasPrefix(flux, "False")
			})
			stays("the server is away", before)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { // the controllers ask all the time while it starts
				defer close(done)
				ticker := time.NewTicker(200 * time.Millisecond)
				defer ticker.Stop()
				for {
					select {
					case <-ticker.C:
						h.demand()
					case <-ctx.Done():
						return
					}
				}
			}()
			p = start()
			login()
			asked("200")
			stop()
			<-done
			stays("the server is starting", before)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		place(0, "prod")
		h.follows(time.Now())
		place(2, "prod")
		h.follows(time.Now(), slices.Sorted(slices.Values(get[*api.Placement](p, web).Status.Clusters))...)
	})
}

// answers counts the answers of the server with a status, by controller.
func (p *process) answers(t *testing.T, token, status string) map[string]int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		for _, controller := range []string{"argocd", "flux"} {
			if strings.HasPrefix(line, "scheduler_http_requests_total{") && strings.Contains(line, `code="`+status+`"`) && strings.Contains(line, "/integrations/"+controller+"/") {
				var n float64
				if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n); err != nil {
					t.Fatal(line, err)
				}
				counts[controller] += int(n)
			}
		}
	}
	return counts
}
