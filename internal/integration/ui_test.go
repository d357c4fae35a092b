//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// browse runs the tests of a file in ui/test/browser in a real browser.
func (p *process) browse(file string, env ...string) {
	p.t.Helper()
	out, err := p.node(env, "--test", "--test-reporter=spec", filepath.Join("test", "browser", file))
	p.t.Logf("%s", out)
	if err != nil {
		p.t.Fatalf("node --test %s: %v", file, err)
	}
}

// node runs a program on the page, in ui, and returns what it says.
func (p *process) node(env []string, args ...string) (string, error) {
	p.t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		p.t.Fatalf("%v: scripts/build-chromium.sh gets one", err)
	}
	node := exec.Command("node", args...)
	node.Dir = filepath.Join("..", "..", "ui")
	node.Env = append(append(os.Environ(), "UI_URL="+p.url, "UI_CHROMIUM="+chromium), env...)
	out, err := node.CombinedOutput()
	return string(out), err
}

// token creates a token. The first one needs none.
func (p *process) token(by, role string, namespaces ...string) string {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"role": role, "namespaces": namespaces})
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, p.url+"/v1/tokens", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if by != "" {
		r.Header.Set("Authorization", "Bearer "+by)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated {
		p.t.Fatal(resp.Status, err, string(answer))
	}
	var created struct{ Token string }
	if err := json.Unmarshal(answer, &created); err != nil {
		p.t.Fatal(err)
	}
	return created.Token
}

// The page shows every view to people with a mouse, a keyboard or a screen reader, and to nobody else's programs.
func TestPage(t *testing.T) {
	t.Parallel()
	p := startServer(t, t.TempDir(), "--log-level", "debug")
	put(p, staticProvider("table", map[string]float64{"eu-1": 30, "eu-2": 40, "eu-3": 60, "us-1": 55}))
	// Nobody listens there, so this signal fails.
	put(p, prometheusProvider("prometheus", "http://127.0.0.1:1"))
	for name, location := range map[string]string{"eu-1": "DE", "eu-2": "FR", "eu-3": "DE", "us-1": "US"} {
		m := metric(name, "table", name, api.FailureExclude)
		m.Spec.Direction = api.Descending
		put(p, m)
		c := cluster(name, "rated", name)
		c.Metadata.Labels["location"] = location
		c.Spec.Region, c.Spec.CloudProvider, c.Spec.Description = name[:2], "example", "One of the four rated clusters"
		c.Spec.Allocatable = api.Quantities{"cpu": "64", "memory": "256Gi"}
		c.Spec.Allocated = api.Quantities{"cpu": "40", "memory": "100Gi"}
		put(p, c)
	}
	put(p, metric("absent", "prometheus", "absent", api.FailureIgnore))
	put(p, &api.Cluster{Metadata: api.Metadata{Name: "ap-1"}, Spec: api.ClusterSpec{
		Region: "ap", Allocatable: api.Quantities{"cpu": "16", "memory": "64Gi"}, Allocated: api.Quantities{"cpu": "15.5", "memory": "60Gi"},
		Taints: []api.Taint{{Key: "maintenance", Value: "disks", Effect: api.EffectNoSelect}},
	}})
	put(p, &api.Cluster{Metadata: api.Metadata{Name: "edge-1"}, Spec: api.ClusterSpec{Region: "eu", Paused: true}})
	put(p, &api.Cluster{Metadata: api.Metadata{Name: "vaults"}, Spec: api.ClusterSpec{Namespace: "vault", Region: "eu"}})
	for i := range 12 {
		region := []string{"ap", "sa", "us"}[i%3]
		put(p, &api.Cluster{Metadata: api.Metadata{Name: fmt.Sprintf("%s-%d", region, 2+i/3), Labels: map[string]string{"location": "CA"}}, Spec: api.ClusterSpec{
			Region: region, Allocatable: api.Quantities{"cpu": "32", "memory": "128Gi"}, Allocated: api.Quantities{"cpu": api.Quantity(fmt.Sprint(2 + i*5%29)), "memory": "40Gi"},
		}})
	}
	put(p, &api.ClusterSet{Metadata: api.Metadata{Name: "rated"}, Spec: api.ClusterSetSpec{Selector: &api.LabelSelector{MatchLabels: map[string]string{"group": "rated"}}}})

	web := placement("web", "rated")
	web.Spec.LabelConstraints = []string{"location in (DE, FR)"}
	web.Spec.ResourceRequests = api.Quantities{"cpu": "2"}
	put(p, web)
	far := placement("far", "rated")
	far.Spec.NumberOfClusters = number(int64(3))
	far.Spec.LabelConstraints = []string{"location is US"}
	put(p, far)
	gold := placement("gold", "rated")
	gold.Metadata.Namespace = "vault"
	put(p, gold)
	put(p, &api.PropagationPolicy{Metadata: api.Metadata{Name: "all", Namespace: "shop"}, Spec: api.PropagationPolicySpec{
		ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
		Placement: api.PropagationPlacement{
			ClusterAffinity:   &api.ClusterAffinity{ClusterNames: []string{"eu-2", "eu-3"}},
			ReplicaScheduling: &api.ReplicaScheduling{Type: api.Divided},
		},
	}})
	put(p, &api.Workload{Metadata: api.Metadata{Name: "api", Namespace: "shop"}, Spec: api.WorkloadSpec{
		APIVersion: "apps/v1", Kind: "Deployment", Replicas: number(int64(6)), ReplicaRequests: api.Quantities{"cpu": "1"},
	}})

	admin := p.token("", "admin")
	viewer := p.token(admin, "viewer", "shop")
	pictures := os.Getenv("UI_PICTURES") // make pictures keeps them
	if pictures == "" {
		pictures = t.TempDir()
	}
	p.browse("page.js", "UI_ADMIN="+admin, "UI_VIEWER="+viewer, "UI_PICTURES="+pictures)
	log := p.stderr.String()
	for _, token := range []string{admin, viewer} {
		if strings.Contains(log, token) {
			t.Error("a token is in the log of the server")
		}
	}
}

// A server that has just been installed says what to do.
func TestPageOfAnEmptyServer(t *testing.T) {
	t.Parallel()
	p := startServer(t, t.TempDir())
	p.browse("empty.js")
}
