//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// nodeTypeKey is the label that marks spot nodes.
const nodeTypeKey = "node.kubernetes.io/capacity"

// The users by which the audit log distinguishes requests.
const (
	userServer = "scheduler-server"
	userTest   = "test"
)

// controlPlane is a real Kubernetes control plane without machines: an API server with etcd, the controllers and the
// scheduler. kwok simulates its nodes and kubelets.
type controlPlane struct {
	*control
	client *kubernetes.Clientset
}

// auditPolicy makes the API server log who ends pods, and nothing else.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Request
    verbs: [delete, deletecollection]
    resources: [{group: "", resources: [pods]}]
  - level: Request
    verbs: [create]
    resources: [{group: "", resources: [pods/eviction]}]
  - level: None
`

// schedulerConfiguration lets the scheduler send requests as fast as the controllers create pods, and retry soon.
const schedulerConfiguration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
`

// startControlPlane starts a control plane on free ports. It stops at the end of the test.
func startControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	began := time.Now()
	p := &controlPlane{}
	p.control = startControlWith(t, func(dir string) []string {
		policy := filepath.Join(dir, "audit.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{
			"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, "audit.log"),
			// Pods leave a lost node after this time instead of five minutes.
			"--default-not-ready-toleration-seconds=5", "--default-unreachable-toleration-seconds=5",
		}
	})
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(p.kubeconfig(userTest).Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // -1 = no limit
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}

	in := func(name string) string { return filepath.Join(p.dir, name) }
	for _, user := range []string{"controllers", "scheduler", "kubelets"} {
		p.write(user+".kubeconfig", []byte(p.kubeconfig(user).Reveal()))
	}
	p.write("scheduler.yaml", fmt.Appendf(nil, schedulerConfiguration, in("scheduler.kubeconfig")))
	const kubernetesScript, kwokScript = "scripts/build-kubernetes.sh", "scripts/build-kwok.sh"
	p.run("kube-controller-manager", kubernetesScript,
		"--kubeconfig="+in("controllers.kubeconfig"), "--secure-port=0", "--leader-elect=false", "--use-service-account-credentials=false",
		"--service-account-private-key-file="+in("sa.key"), "--root-ca-file="+in("ca.crt"),
		"--node-monitor-period=1s", "--kube-api-qps=500", "--kube-api-burst=1000",
		"--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20", "--concurrent-statefulset-syncs=20",
	)
	p.run("kube-scheduler", kubernetesScript, "--config="+in("scheduler.yaml"), "--secure-port=0")
	p.run("kwok", kwokScript,
		"--kubeconfig="+in("kubelets.kubeconfig"), "--manage-all-nodes", "--node-lease-duration-seconds=40", "--server-address="+proxytest.FreeAddress(t),
		"--cidr=10.64.0.0/10", "--config="+testbedBinary(t, "kwok-stages.yaml", kwokScript), "--config="+filepath.Join("testdata", "kwok", "pod-stages.yaml"),
	)
	eventually.True(t, "the controllers run", func() bool {
		_, err := p.client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	t.Logf("the control plane was ready after %s", time.Since(began).Round(time.Millisecond))
	return p
}

// run starts one of its programs, which is stopped at the end of the test.
func (p *controlPlane) run(name, script string, args ...string) {
	p.t.Helper()
	output := &logtest.Buffer{}
	cmd := exec.Command(testbedBinary(p.t, name, script), args...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Error(err)
		}
		_ = cmd.Wait() // it was killed
		if p.t.Failed() {
			p.t.Logf("the end of the log of %s:\n%s", name, output.Tail())
		}
	})
}

// addNodes adds nodes of one type, named after it, for 110 pods each, and waits until pods can be scheduled on them. It
// returns their names.
func (p *controlPlane) addNodes(nodeType string, n int, labels map[string]string) []string {
	p.t.Helper()
	var names []string
	room := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	existing := len(p.nodes(nodeType))
	for i := range n {
		name := fmt.Sprintf("%s-%d", nodeType, existing+i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				nodeTypeKey: nodeType, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
			}},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Phase: corev1.NodeRunning},
		}
		for key, value := range labels {
			node.Labels[key] = value
		}
		if _, err := p.client.CoreV1().Nodes().Create(p.t.Context(), node, metav1.CreateOptions{}); err != nil {
			p.t.Fatal(err)
		}
		names = append(names, name)
	}
	eventually.True(p.t, "the nodes are ready", func() bool {
		for _, name := range names {
			node, err := p.client.CoreV1().Nodes().Get(p.t.Context(), name, metav1.GetOptions{})
			if err != nil || len(node.Spec.Taints) > 0 || !nodeReady(node) {
				return false
			}
		}
		return true
	})
	return names
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// nodes returns the names of the nodes of one type.
func (p *controlPlane) nodes(nodeType string) []string {
	p.t.Helper()
	list, err := p.client.CoreV1().Nodes().List(p.t.Context(), metav1.ListOptions{LabelSelector: nodeTypeKey + "=" + nodeType})
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// lose makes a node fail until it is restored.
func (p *controlPlane) lose(node string) { p.setNodeFailed(node, `"true"`) }

func (p *controlPlane) restore(node string) { p.setNodeFailed(node, "null") }

func (p *controlPlane) setNodeFailed(node, value string) {
	p.t.Helper()
	p.patchNode(node, `{"metadata": {"labels": {"node-not-ready.stage.kwok.x-k8s.io": `+value+`}}}`)
}

func (p *controlPlane) patchNode(node, patch string) {
	p.t.Helper()
	if _, err := p.client.CoreV1().Nodes().Patch(p.t.Context(), node, strategicMerge, []byte(patch), metav1.PatchOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// namespace creates a namespace in which pods can be created.
func (p *controlPlane) namespace(name string, labels map[string]string) {
	p.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := p.client.CoreV1().Namespaces().Create(p.t.Context(), ns, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}
