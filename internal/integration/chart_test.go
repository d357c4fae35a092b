//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

const (
	chart             = "../../deploy/chart"
	manifestDirectory = "../../deploy/kubernetes"
	chartNamespace    = "scheduler"
	chartName         = "scheduler-server"
)

// restricted is the label of namespaces that only admit pods with the strictest rules.
var restricted = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

// runHelm runs helm and returns what it printed.
func runHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.Command(testbedBinary(t, "helm", "scripts/build-helm.sh"), args...)
	home := t.TempDir()
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// template renders the chart.
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runHelm(t, append([]string{"template", chartName, chart, "--namespace", chartNamespace}, args...)...)
}

// decodeObjects reads the objects of a YAML file.
func decodeObjects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		t.Fatal("there are no objects")
	}
	return objects
}

// readManifests returns the objects of the plain manifests.
func readManifests(t *testing.T, variant string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifestDirectory, variant, "manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return decodeObjects(t, string(text))
}

// find returns the object of a kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// as decodes an object into its type.
func as[T any](t *testing.T, from map[string]any) T {
	t.Helper()
	var to T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from, &to, true); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestManifestsAreRenderedFromTheChart(t *testing.T) {
	t.Parallel()
	rendered := t.TempDir()
	command := exec.Command("../../scripts/render-manifests.sh", rendered)
	testbedBinary(t, "helm", "scripts/build-helm.sh")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, variant := range []string{"one-server", "three-servers"} {
		name := filepath.Join(variant, "manifests.yaml")
		want, err := os.ReadFile(filepath.Join(rendered, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(manifestDirectory, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the chart renders: run make manifests", name)
		}
	}
}

func TestChartChecksValues(t *testing.T) {
	t.Parallel()
	image := []string{"--set", "image.repository=example/scheduler-server"}
	if _, err := runHelm(t, append([]string{"lint", "--strict", chart}, image...)...); err != nil {
		t.Error(err)
	}
	for want, args := range map[string][]string{
		"image.repository: is required": nil,
		"/replicas":                     append(image, "--set", "replicas=2"),
		"replica":                       append(image, "--set", "replica=3"),
		"/image/digest":                 append(image, "--set", "image.digest=latest"),
		"/persistence/size":             append(image, "--set", "persistence.size=large"),
		"/tls/certManager/issuerRef":    append(image, "--set", "tls.certManager.enabled=true"),
		"tokenSecret.name: is required": append(image, "--set", "monitoring.serviceMonitor.enabled=true"),
		"/auth/kubernetes/issuer":       append(image, "--set", "auth.kubernetes.issuer=kubernetes"),
	} {
		if _, err := template(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error with %q", args, err, want)
		}
	}
	everything, err := template(t, append(image, "--set", "replicas=3,image.digest=sha256:"+strings.Repeat("0", 64)+
		",tls.certManager.enabled=true,tls.certManager.issuerRef.name=ours,webhook.enabled=true,networkPolicy.enabled=true"+
		",monitoring.serviceMonitor.enabled=true,monitoring.serviceMonitor.tokenSecret.name=prometheus,monitoring.prometheusRule.enabled=true"+
		",config.log_level=debug,config.auth.jwt[0].name=github")...)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	objects := decodeObjects(t, everything)
	for _, object := range objects {
		kinds[object.GetKind()]++
	}
	for kind, n := range map[string]int{
		"StatefulSet": 1, "Service": 2, "ConfigMap": 1, "ServiceAccount": 2, "PodDisruptionBudget": 1, "NetworkPolicy": 1,
		"Certificate": 3, "Issuer": 2, "ServiceMonitor": 1, "PrometheusRule": 1,
	} {
		if kinds[kind] != n {
			t.Errorf("%d objects of kind %s, want %d", kinds[kind], kind, n)
		}
	}
	rules, _, err := unstructured.NestedSlice(find(t, objects, "PrometheusRule", chartName).Object, "spec", "groups")
	if err != nil || len(rules) == 0 {
		t.Errorf("the alert rules are missing: %v", err)
	}
	configuration, _, err := unstructured.NestedString(find(t, objects, "ConfigMap", chartName).Object, "data", "server.yaml")
	for _, want := range []string{"log_level: debug", "name: github", "name: kubernetes", "webhook_url: https://scheduler-server.scheduler.svc:8667"} {
		if err != nil || !strings.Contains(configuration, want) {
			t.Errorf("the configuration has no %q (%v):\n%s", want, err, configuration)
		}
	}
}

// applier applies objects to a cluster.
type applier struct {
	t       *testing.T
	client  *kubernetes.Clientset
	objects *dynamic.DynamicClient
	mapper  meta.RESTMapper
}

func newApplier(t *testing.T, c *control) *applier {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(c.kubeconfig(userTest).Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no limit
	config.WarningHandler = rest.NoWarnings{}
	a := &applier{t: t}
	if a.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if a.objects, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(a.client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	a.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return a
}

// at returns the interface of an object.
func (a *applier) at(object *unstructured.Unstructured) dynamic.ResourceInterface {
	a.t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		a.t.Fatal(err)
	}
	if namespace := object.GetNamespace(); namespace != "" {
		return a.objects.Resource(mapping.Resource).Namespace(namespace)
	}
	return a.objects.Resource(mapping.Resource)
}

// apply applies objects on the server, and returns their versions.
func (a *applier) apply(objects []*unstructured.Unstructured) map[string]string {
	a.t.Helper()
	versions := map[string]string{}
	for _, object := range objects {
		applied, err := a.at(object).Apply(a.t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			a.t.Fatal(err)
		}
		versions[object.GetKind()+" "+object.GetName()] = applied.GetResourceVersion()
	}
	return versions
}

func (a *applier) namespace(name string, labels map[string]string) {
	a.t.Helper()
	_, err := a.client.CoreV1().Namespaces().Create(a.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
}

// Applied twice, the manifests change nothing the second time, and the strictest namespace admits their pods.
func TestManifestsOnARealAPIServer(t *testing.T) {
	t.Parallel()
	a := newApplier(t, startControl(t))
	a.namespace(chartNamespace, restricted)
	for _, variant := range []string{"one-server", "three-servers"} {
		objects := readManifests(t, variant)
		first := a.apply(objects)
		for name, version := range a.apply(objects) {
			if version != first[name] {
				t.Errorf("%s: the second time, %s was changed", variant, name)
			}
		}
		set := find(t, objects, "StatefulSet", chartName)
		spec, _, err := unstructured.NestedMap(set.Object, "spec", "template", "spec")
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: variant}, Spec: as[corev1.PodSpec](t, spec)}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + chartName + "-0"},
		}})
		if _, err := a.client.CoreV1().Pods(chartNamespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: %v", variant, err)
		}
		// So the namespace does check pods.
		pod.Name += "-relaxed"
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = number(true)
		if _, err := a.client.CoreV1().Pods(chartNamespace).Create(t.Context(), pod, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: a pod that may get more privileges: %v, want it refused", variant, err)
		}
	}
}

// helm installs the chart on a real control plane, changes nothing when nothing has changed, and upgrades it.
func TestChartOnARealControlPlane(t *testing.T) {
	t.Parallel()
	p := startControlPlane(t)
	p.addNodes(onDemandNode, 3, nil)
	a := newApplier(t, p.control)
	a.namespace(chartNamespace, restricted)
	const servers = 3
	for i := range servers {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("disk-%d", i)}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": resource.MustParse("10Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: "disks", PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}},
		}}
		if _, err := a.client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(p.kubeconfig(userTest).Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	upgrade := func(args ...string) {
		t.Helper()
		_, err := runHelm(t, append([]string{
			"upgrade", "--install", chartName, chart, "--namespace", chartNamespace, "--kubeconfig", kubeconfig, "--wait", "--timeout", eventually.Limit.String(),
			"--set", fmt.Sprintf("replicas=%d,image.repository=example/scheduler-server,persistence.storageClassName=disks,networkPolicy.enabled=true", servers),
		}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
	}
	// state returns the generation, or else the version, of every object of the release.
	state := func() map[string]string {
		t.Helper()
		manifest, err := runHelm(t, "get", "manifest", chartName, "--namespace", chartNamespace, "--kubeconfig", kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, object := range decodeObjects(t, manifest) {
			stored, err := a.at(object).Get(t.Context(), object.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out[object.GetKind()] += fmt.Sprint(object.GetName(), " ", stored.GetGeneration(), " ", stored.GetLabels(), " ")
			if stored.GetGeneration() == 0 { // nobody else writes to it
				out[object.GetKind()] += stored.GetResourceVersion()
			}
		}
		return out
	}
	pods := func() map[string]string {
		t.Helper()
		list, err := a.client.CoreV1().Pods(chartNamespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, pod := range list.Items {
			out[pod.Name] = string(pod.UID)
		}
		return out
	}

	upgrade()
	first, before := state(), pods()
	if len(before) != servers {
		t.Fatalf("the pods are %v, want %d", before, servers)
	}
	upgrade()
	for kind, was := range first {
		if now := state()[kind]; now != was {
			t.Errorf("%s was changed by the same values: %s, before: %s", kind, now, was)
		}
	}
	for name, uid := range pods() {
		if before[name] != uid {
			t.Errorf("%s was replaced although nothing has changed", name)
		}
	}
	upgrade("--set", "config.log_level=debug")
	for name, uid := range pods() {
		if before[name] == uid {
			t.Errorf("%s still has the old configuration", name)
		}
	}
	stored, err := a.client.CoreV1().ConfigMaps(chartNamespace).Get(t.Context(), chartName, metav1.GetOptions{})
	if err != nil || !strings.Contains(stored.Data["server.yaml"], "log_level: debug") {
		t.Errorf("the configuration is %v, %v", stored.Data, err)
	}
	if _, err := runHelm(t, "uninstall", chartName, "--namespace", chartNamespace, "--kubeconfig", kubeconfig, "--wait"); err != nil {
		t.Fatal(err)
	}
	claims, err := a.client.CoreV1().PersistentVolumeClaims(chartNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != servers {
		t.Errorf("%d volume claims are left, want the data of all servers: %v", len(claims.Items), err)
	}
}

// chartServer is a server that runs here as the manifests say.
type chartServer struct {
	dir     string
	address string
	log     *logtest.Buffer
}

// podFiles makes the files that a pod has from its secrets, in a directory.
func podFiles(t *testing.T, dir string, secrets map[string]string) {
	t.Helper()
	for secret, host := range secrets {
		target := filepath.Join(dir, secret)
		if out, err := exec.Command(servertest.Binary(t), "certificate", target, "--name", "tls", "--host", host).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for from, to := range map[string]string{"tls.pem": "tls.crt", "tls-key.pem": "tls.key", "ca.pem": "ca.crt"} {
			if err := os.Rename(filepath.Join(target, from), filepath.Join(target, to)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// runAs starts the server of a pod of the manifests, with names and paths replaced by those of this machine.
func runAs(t *testing.T, objects []*unstructured.Unstructured, pod, dir, address string, replacements ...string) *chartServer {
	t.Helper()
	s := &chartServer{dir: dir, address: address, log: &logtest.Buffer{}}
	replace := strings.NewReplacer(append(replacements, "$(SCHEDULER_NAME)", pod)...).Replace
	configuration, _, err := unstructured.NestedString(find(t, objects, "ConfigMap", chartName).Object, "data", "server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "server.yaml")
	if err := os.WriteFile(file, []byte(replace(configuration)), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(find(t, objects, "StatefulSet", chartName).Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	container := as[corev1.PodSpec](t, spec).Containers[0]
	args := strings.Split(strings.ReplaceAll(strings.Join(container.Args, "\n"), "/etc/scheduler/server.yaml", file), "\n")
	command := exec.Command(servertest.Binary(t), args...)
	command.Stdout, command.Stderr = s.log, s.log
	command.Env = []string{"SCHEDULER_STORE_TIMEOUT=" + storetest.Patience.String(), "SCHEDULER_STORE_PATIENCE=" + storetest.Patience.String()}
	for _, variable := range container.Env {
		value := replace(variable.Value)
		if variable.ValueFrom != nil && variable.ValueFrom.FieldRef.FieldPath == "metadata.name" {
			value = pod
		}
		command.Env = append(command.Env, variable.Name+"="+value)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()         // it was killed
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", pod, s.log.Tail())
		}
	})
	return s
}

// connect returns a client of the server.
func (s *chartServer) connect(t *testing.T, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Endpoint: "https://" + s.address, CACertFile: filepath.Join(s.dir, "tls", "ca.crt"), Token: api.NewSecret(token), MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (s *chartServer) ready(t *testing.T) {
	t.Helper()
	c := s.connect(t, "")
	eventually.True(t, "the server is ready", func() bool { return c.Call(context.Background(), http.MethodGet, "/readyz", nil, nil) == nil })
}

// The configuration of the chart is one that servers run with, and administrators log in with a token of Kubernetes.
func TestServerOfTheManifests(t *testing.T) {
	t.Parallel()
	c := startControl(t)
	a := newApplier(t, c)
	a.namespace(chartNamespace, restricted)
	objects := readManifests(t, "one-server")
	a.apply(objects)
	if _, err := a.client.CoreV1().ServiceAccounts(chartNamespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := func(account, audience string) string {
		t.Helper()
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
		answer, err := a.client.CoreV1().ServiceAccounts(chartNamespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Token
	}
	dir, address := t.TempDir(), proxytest.FreeAddress(t)
	podFiles(t, dir, map[string]string{"tls": "localhost"})
	for name, text := range map[string]string{"ca.crt": string(c.ca.PEM()), "token": token(chartName, "https://test")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := runAs(t, objects, chartName+"-0", dir, address,
		"https://kubernetes.default.svc.cluster.local", "https://test", "https://kubernetes.default.svc/", "https://"+c.address+"/",
		"/var/run/secrets/kubernetes.io/serviceaccount", dir, "/var/lib/scheduler", dir, "/etc/scheduler", dir, "0.0.0.0:8665", address)
	s.ready(t)
	if err := s.connect(t, token(chartName+"-admin", "scheduler")).Call(t.Context(), http.MethodGet, "/v1/tokens", nil, nil); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	for what, text := range map[string]string{"without a token": "", "another service account": token("stranger", "scheduler"), "a token for another service": token(chartName+"-admin", "https://test")} {
		if err := s.connect(t, text).Call(t.Context(), http.MethodGet, "/v1/clusters", nil, nil); client.StatusOf(err) != http.StatusUnauthorized && client.StatusOf(err) != http.StatusForbidden {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}

// The three servers of the manifests form a cluster.
func TestThreeServersOfTheManifests(t *testing.T) {
	t.Parallel()
	objects := readManifests(t, "three-servers")
	shared := t.TempDir()
	podFiles(t, shared, map[string]string{"tls": "localhost", "cluster": "localhost"})
	if err := os.Mkdir(filepath.Join(shared, "key"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shared, "key", "seal.key"), []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	var servers []*chartServer
	var addresses, stores []string
	for range 3 {
		addresses, stores = append(addresses, proxytest.FreeAddress(t)), append(stores, proxytest.FreeAddress(t))
	}
	for i := range 3 {
		var replacements []string
		for j := range 3 {
			host := fmt.Sprintf("%s-%d.%s-peers.%s.svc", chartName, j, chartName, chartNamespace)
			replacements = append(replacements, host+":8666", stores[j], host+":8665", addresses[j])
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(shared)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ca.crt", "token"} { // there is no Kubernetes that would make them
			data, err := os.ReadFile(filepath.Join(shared, "tls", "ca.crt"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		pod := fmt.Sprintf("%s-%d", chartName, i)
		replacements = append(replacements,
			"$(SCHEDULER_NAME)."+chartName+"-peers."+chartNamespace+".svc:8665", addresses[i],
			"/var/run/secrets/kubernetes.io/serviceaccount", dir, "/var/lib/scheduler", dir, "/etc/scheduler", dir,
			"0.0.0.0:8665", addresses[i], "0.0.0.0:8666", stores[i])
		servers = append(servers, runAs(t, objects, pod, dir, addresses[i], replacements...))
	}
	for _, s := range servers {
		s.ready(t)
	}
	eventually.True(t, "one of them leads", func() bool {
		return slices.ContainsFunc(servers, func(s *chartServer) bool { return s.log.Contains("this server is now the leader") })
	})
}
