//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// kubernetesCluster returns a cluster that is watched with a kubeconfig, with short intervals.
func kubernetesCluster(name string, kubeconfig api.Secret, metrics ...string) *api.Cluster {
	c := cluster(name, "kubernetes", metrics...)
	c.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: kubeconfig}
	c.Spec.Health = &api.HealthSpec{Interval: "1s", FailureThreshold: 2, SuccessThreshold: 2}
	return c
}

func clusterStatus(p *process, name string) api.ClusterStatus {
	return get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: name}).Status
}

// taintKeys returns the keys of the effective taints.
func taintKeys(s api.ClusterStatus) string {
	var keys []string
	for _, t := range s.Taints {
		keys = append(keys, t.Key)
	}
	return strings.Join(keys, " ")
}

// chosen returns the clusters of the placement "web".
func chosen(p *process) string {
	var names []string
	for _, d := range get[*api.Placement](p, placementKey("web")).Status.Decisions {
		names = append(names, d.Cluster)
	}
	return strings.Join(names, " ")
}

// terraform runs Terraform with the built provider in a directory.
type terraform struct {
	t           *testing.T
	binary, dir string
	environment []string
}

func newTerraform(t *testing.T, endpoint, config string) *terraform {
	t.Helper()
	f := &terraform{t: t, dir: t.TempDir()}
	var err error
	if f.binary, err = exec.LookPath("terraform"); err != nil {
		f.binary = testbedBinary(t, "terraform", "scripts/build-terraform.sh")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(bin, "terraform-provider-scheduler"), "../..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("terraform.rc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"scheduler/scheduler\" = %q\n  }\n  direct {}\n}\n", bin))
	write("main.tf", config)
	f.environment = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(f.dir, "terraform.rc"),
		"CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "SCHEDULER_ENDPOINT="+endpoint)
	return f
}

// run runs a Terraform command that must exit with one of the codes.
func (f *terraform) run(codes []int, args ...string) string {
	f.t.Helper()
	cmd := exec.Command(f.binary, append(args, "-no-color", "-input=false")...)
	cmd.Dir, cmd.Env = f.dir, f.environment
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || !slices.Contains(codes, cmd.ProcessState.ExitCode()) {
		f.t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// planned checks what a plan shows for the placement's cluster: "a → b", or no changes.
func (f *terraform) planned(want string) {
	f.t.Helper()
	out := f.run([]int{0, 2}, "plan", "-detailed-exitcode")
	moved := regexp.MustCompile(`cluster\s+= "([a-z]+)" -> "([a-z]+)"`).FindStringSubmatch(out)
	got := "nothing"
	if moved != nil {
		got = moved[1] + " → " + moved[2]
	}
	if got != want {
		f.t.Errorf("the plan has %s, want %s:\n%s", got, want, out)
	}
}

// TestKubernetesCluster takes a real cluster through failures and changes. Each step shows in its state and taints, in
// the decision of a placement that prefers it, and in Terraform's plan.
func TestKubernetesCluster(t *testing.T) {
	t.Parallel()
	k := startControl(t)
	k.addNode("n1", "a")
	k.addNode("n2", "b")
	p := startServer(t, t.TempDir())
	put(p, staticProvider("rates", map[string]float64{"good": 90, "poor": 10}))
	put(p, metric("good", "rates", "good", api.FailureExclude))
	put(p, metric("poor", "rates", "poor", api.FailureExclude))
	put(p, cluster("spare", "kubernetes", "poor"))
	watched := put(p, kubernetesCluster("real", k.kubeconfig("one"), "good"))
	if watched.Status.State != api.StateOnline || watched.Status.Nodes == nil || watched.Status.Nodes.Total != 2 {
		t.Errorf("unexpected status %+v in the answer to the write", watched.Status)
	}
	f := newTerraform(t, p.url, `
		terraform {
		  required_providers {
		    scheduler = { source = "scheduler/scheduler" }
		  }
		}
		resource "scheduler_placement" "web" {
		  name               = "web"
		  namespace          = "shop"
		  number_of_clusters = 1
		  label_constraints  = ["group is kubernetes"]
		  reschedule_after   = "0s"
		  metrics            = { stickiness = 0 }
		}
		output "cluster" { value = one(scheduler_placement.web.clusters) }
	`)
	f.run([]int{0}, "apply", "-auto-approve")
	f.planned("nothing")

	expect := func(what string, state api.ClusterState, taints, cluster string) {
		t.Helper()
		took := eventually.True(t, what, func() bool {
			s := clusterStatus(p, "real")
			return s.State == state && taintKeys(s) == taints && chosen(p) == cluster
		})
		t.Logf("%s: %s after %s", what, state, took.Round(10*time.Millisecond))
	}
	expect("well", api.StateOnline, "", "real")

	k.condition("n1", "MemoryPressure", "True")
	eventually.True(t, "one node of two is under pressure", func() bool { return clusterStatus(p, "real").Nodes.Pressure == 1 })
	expect("one node of two under pressure", api.StateOnline, "", "real")
	k.condition("n2", "DiskPressure", "True")
	expect("both nodes under pressure", api.StateUnhealthy, api.TaintUnhealthy, "spare")
	f.planned("real → spare")
	k.condition("n1", "MemoryPressure", "False")
	k.condition("n2", "DiskPressure", "False")
	expect("relieved", api.StateOnline, "", "real")
	f.planned("nothing")

	k.condition("n1", "Ready", "Unknown")
	k.condition("n2", "Ready", "False")
	expect("nodes not ready", api.StateNotReady, api.TaintUnhealthy, "spare")
	k.condition("n1", "Ready", "True")
	expect("half of them ready", api.StateOnline, "", "real")
	k.condition("n2", "Ready", "True")

	k.signal(syscall.SIGSTOP)
	expect("the API server hangs", api.StateOffline, api.TaintUnreachable, "spare")
	f.planned("real → spare")
	k.signal(syscall.SIGCONT)
	expect("it goes on", api.StateOnline, "", "real")
	f.planned("nothing")

	k.kill()
	expect("it is gone", api.StateOffline, api.TaintUnreachable, "spare")
	// Its open connection was reset; the next attempt is refused.
	message := ""
	eventually.True(t, "the cause is a refused connection", func() bool {
		message = api.FindCondition(clusterStatus(p, "real").Conditions, api.ConditionObserved).Message
		return strings.Contains(message, "connection refused")
	})
	if strings.Contains(message, k.address) {
		t.Errorf("message %q reveals the address", message)
	}
	// While it is down, its authority is replaced: the old credentials become invalid.
	k.renew()
	k.start()
	eventually.True(t, "the certificate is not trusted", func() bool {
		observed := api.FindCondition(clusterStatus(p, "real").Conditions, api.ConditionObserved)
		return strings.Contains(observed.Message, "unknown authority")
	})
	expect("with a certificate of another authority", api.StateOffline, api.TaintUnreachable, "spare")
	put(p, kubernetesCluster("real", k.kubeconfig("two"), "good"))
	expect("with the new credentials", api.StateOnline, "", "real")
	// Again while it is online: it stays online throughout.
	put(p, kubernetesCluster("real", k.kubeconfig("three"), "good"))
	if s := clusterStatus(p, "real"); s.State != api.StateOnline || chosen(p) != "real" {
		t.Errorf("state %s after a change of the credentials", s.State)
	}
	for _, word := range []string{"client-key-data", "PRIVATE KEY", "certificate-authority-data"} {
		if p.stderr.Contains(word) {
			t.Errorf("the server's log contains %q", word)
		}
	}
}

// TestKubernetesFacts checks that capacity, usage, topology and API types follow the cluster.
func TestKubernetesFacts(t *testing.T) {
	t.Parallel()
	k := startControl(t)
	p := startServer(t, t.TempDir())
	watched := put(p, kubernetesCluster("real", k.kubeconfig("one")))
	if s := watched.Status; s.State != api.StateOnline || !strings.HasPrefix(s.KubernetesVersion, "v1.") || !slices.Contains(s.APIResources, "apps/v1/Deployment") {
		t.Errorf("without permission for nodes: %s %q, %d types", s.State, s.KubernetesVersion, len(s.APIResources))
	}
	expect := func(what string, ok func(s api.ClusterStatus) bool) {
		t.Helper()
		var s api.ClusterStatus
		defer func() {
			if t.Failed() {
				t.Logf("%+v", s)
			}
		}()
		took := eventually.True(t, what, func() bool { s = clusterStatus(p, "real"); return ok(s) })
		t.Logf("%s after %s", what, took.Round(10*time.Millisecond))
	}
	k.addNode("n1", "b")
	k.addNode("n2", "a")
	expect("two nodes", func(s api.ClusterStatus) bool {
		return s.Allocatable["cpu"] == "16" && s.Capacity["memory"] == "64Gi" && s.Region == "eu-central" && slices.Equal(s.Zones, []string{"a", "b"}) && s.Nodes.Ready == 2
	})
	k.addPod("p1", "n1", "1500m")
	k.addPod("p2", "n2", "2")
	expect("two pods", func(s api.ClusterStatus) bool {
		return s.Allocated["cpu"] == "3500m" && s.Allocated["memory"] == "2Gi" && s.Allocated["pods"] == "2" && s.Available["cpu"] == "12500m"
	})
	k.do(http.MethodPatch, "/api/v1/nodes/n2", document{"spec": document{"unschedulable": true}})
	expect("one node cordoned off", func(s api.ClusterStatus) bool {
		return s.Capacity["cpu"] == "16" && s.Allocatable["cpu"] == "8" && s.Available["cpu"] == "6500m"
	})
	k.removePod("p1")
	expect("a pod gone", func(s api.ClusterStatus) bool { return s.Allocated["pods"] == "0" && s.Available["cpu"] == "8" })
	k.do(http.MethodDelete, "/api/v1/nodes/n2", nil)
	expect("a node gone", func(s api.ClusterStatus) bool {
		return s.Capacity["cpu"] == "8" && slices.Equal(s.Zones, []string{"b"})
	})
	k.define("crontabs", "CronTab")
	expect("a definition", func(s api.ClusterStatus) bool {
		return slices.Equal(s.CustomResources, []string{"crontabs.example.com"}) && slices.Contains(s.APIResources, "example.com/v1/CronTab")
	})
	k.do(http.MethodDelete, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com", nil)
	expect("the definition gone", func(s api.ClusterStatus) bool {
		return len(s.CustomResources) == 0 && !slices.Contains(s.APIResources, "example.com/v1/CronTab")
	})
	put(p, cluster("real", "kubernetes"))
	expect("the kubeconfig taken back", func(s api.ClusterStatus) bool {
		return s.Nodes == nil && len(s.APIResources) == 0 && s.Region == "" && s.KubernetesVersion == "" && s.Capacity == nil
	})
}

// TestManyKubernetesClusters watches one API server as many clusters, and logs the memory that this takes.
func TestManyKubernetesClusters(t *testing.T) {
	const clusters, pods = 100, 200
	k := startControl(t)
	k.addNode("n1", "a")
	for i := range pods {
		k.addPod(fmt.Sprint("p", i), "n1", "10m")
	}
	dataDir := t.TempDir()
	p := startServer(t, dataDir)
	before := memory(t, p)
	kubeconfig := k.kubeconfig("one")
	began := time.Now()
	for i := range clusters {
		put(p, kubernetesCluster(fmt.Sprint("c", i), kubeconfig))
	}
	all := func(pods string) func() bool {
		return func() bool {
			for i := range clusters {
				if s := clusterStatus(p, fmt.Sprint("c", i)); s.State != api.StateOnline || string(s.Allocated["pods"]) != pods {
					return false
				}
			}
			return true
		}
	}
	eventually.True(t, "every cluster is observed", all(fmt.Sprint(pods)))
	t.Logf("%d clusters with %d pods each were observed within %s of their writes", clusters, pods, time.Since(began).Round(time.Millisecond))
	k.addPod("more", "n1", "10m")
	took := eventually.True(t, "every cluster has the new pod", all(fmt.Sprint(pods+1)))
	t.Logf("one more pod was in all of them after %s", took.Round(time.Millisecond))
	after := memory(t, p)
	t.Logf("memory: %d MiB before, %d MiB with them: %d KiB for each", before>>10, after>>10, (after-before)/clusters)
	// A restart starts with all of them.
	p.stop()
	p = startServer(t, dataDir)
	k.addPod("later", "n1", "10m")
	took = eventually.True(t, "after a restart every cluster has the new pod", all(fmt.Sprint(pods+2)))
	t.Logf("after a restart one more pod was in all of them after %s", took.Round(time.Millisecond))
}

// memory returns the memory of a server in KiB.
func memory(t *testing.T, p *process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
