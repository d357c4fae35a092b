package cli

import (
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// drained reports whether a cluster is paused.
func (f *fleet) drained(name string) bool {
	f.t.Helper()
	cluster, err := getCluster(f.t.Context(), f.server, name)
	if err != nil {
		f.t.Fatal(err)
	}
	return cluster.Spec.Paused
}

// Without the answer yes, drain changes nothing.
func testDrainAsks(t *testing.T, f *fleet) {
	f.put("/v1/clusters/ask", `{"spec":{}}`)
	f.env.Terminal.asks = true
	for _, test := range []struct {
		answer string
		code   int
	}{{"", exitRefused}, {"n\n", exitRefused}, {"maybe\n", exitRefused}, {"y\n", exitOK}, {"", exitOK}} { // it is drained then: nothing to ask
		f.env.Stdin = strings.NewReader(test.answer)
		code, stdout, stderr := f.run("drain", "ask")
		if code != test.code || f.drained("ask") != (code == exitOK) || code != exitOK && !strings.HasSuffix(stderr, "nothing was changed\n") {
			t.Errorf("answer %q: exit code %d: %s%s", test.answer, code, stdout, stderr)
		}
	}
}

// TestDrainHeld checks that what tolerates the drain stays, and that drain says so.
func TestDrainHeld(t *testing.T) {
	f := newServer(t)
	f.vars["SCHEDULER_NAMESPACE"] = "held"
	f.put("/v1/clusters/held-1", `{"metadata":{"labels":{"in":"held"}},"spec":{}}`)
	f.put("/v1/namespaces/held/placements/stays", `{"spec":{"cluster_names":["held-1"],"tolerations":[{"key":"scheduler/drain","operator":"Exists"}]}}`)
	f.put("/v1/namespaces/held/placements/moves", `{"spec":{"number_of_clusters":1,"label_constraints":["in is held"]}}`)
	f.put("/v1/namespaces/held/placements/lost", `{"spec":{"cluster_names":["held-1"]}}`)
	f.put("/v1/clusters/held-2", `{"metadata":{"labels":{"in":"held"}},"spec":{}}`)
	for _, name := range []string{"drain-held-dry-run", "drain-held", "drain-held-again"} {
		args := []string{"drain", "held-1", "--yes"}
		want := exitRefused
		if strings.HasSuffix(name, "dry-run") {
			args, want = append(args, "--dry-run"), exitOK
		}
		code, stdout, stderr := f.run(args...)
		if code != want {
			t.Errorf("%s: exit code %d, want %d", name, code, want)
		}
		golden(t, name, f.stable("$ "+program+" "+strings.Join(args, " ")+"\n"+stdout+stderr))
	}
}

// An interrupted drain goes on, says how to continue, and continues.
func testDrainInterrupted(t *testing.T, f *fleet) {
	f.vars["SCHEDULER_NAMESPACE"] = "slow"
	for _, name := range []string{"slow-1", "slow-2"} {
		f.put("/v1/clusters/"+name, `{"metadata":{"labels":{"in":"slow"}},"spec":{"allocatable":{"cpu":"10"}}}`)
	}
	f.put("/v1/clusters/slow-2", `{"metadata":{"labels":{"in":"slow"}},"spec":{"allocatable":{"cpu":"10"},"paused":true}}`)
	f.put("/v1/namespaces/slow/propagation-policies/slow", `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],
		"placement":{"cluster_affinities":[{"affinity_name":"a","label_selector":{"match_labels":{"in":"slow"}}}]},
		"failover":{"cluster":{"purge_mode":"Gracefully"}}}}`)
	f.put("/v1/namespaces/slow/workloads/slow", `{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":2}}`)
	f.put("/v1/clusters/slow-2", `{"metadata":{"labels":{"in":"slow"}},"spec":{"allocatable":{"cpu":"10"}}}`)
	stop := f.follow("drain", "slow-1", "--yes")
	defer stop()
	eventually.True(t, "the workload is leaving", func() bool { return f.stdout.Contains("leaving slow-1") })
	if code := stop(); code != exitRefused || !f.stderr.Contains("run "+program+" drain slow-1") || !f.stderr.Contains("uncordon slow-1") || !f.drained("slow-1") {
		t.Errorf("exit code %d: %s%s", code, f.stdout.String(), f.stderr.String())
	}
	code, stdout, stderr := f.run("drain", "slow-1", "--yes", "--timeout", "1ns")
	if code != exitRefused || !strings.Contains(stdout, "not healthy yet; it leaves at the latest at ") ||
		!strings.Contains(stderr, "after 1ns: ") || !strings.Contains(stderr, "run "+program+" drain slow-1") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	again := f.follow("drain", "slow-1", "--yes", "--timeout", "24h")
	defer again()
	if err := f.server.Delete(t.Context(), api.Key{Kind: api.KindWorkload, Namespace: "slow", Name: "slow"}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "nothing is left", func() bool { return f.stdout.Contains("nothing is left on slow-1\n") })
	if code := again(); code != exitOK {
		t.Errorf("exit code %d: %s", code, f.stderr.String())
	}
}
