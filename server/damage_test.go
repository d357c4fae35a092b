package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// storedValue returns where the value starts in a record of the database, after the field's tag and length, or -1.
func storedValue(record []byte) int {
	for i, b := range record[:len(record)-4] {
		for _, at := range []int{i + 2, i + 3} {
			if b == 0x2a && (record[at] == 0x84 || record[at] == 0x87) { // the magic bytes of envelopes
				return at
			}
		}
	}
	return -1
}

// flipStored flips one bit in the stored value of a part of an object, in all its versions, in the database of a
// stopped server.
func flipStored(t *testing.T, dataDir, part string, key api.Key) {
	t.Helper()
	namespace := key.Namespace
	if namespace == "" {
		namespace = "-"
	}
	path := filepath.Join(dataDir, "etcd", "member", "snap", "db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Appendf(nil, "/v1/%s/%s/%s/%s\x10", part, key.Kind, namespace, key.Name) // and the tag of the next field
	flipped := 0
	for at := 0; ; {
		next := bytes.Index(content[at:], name)
		if next < 0 {
			break
		}
		at += next + len(name)
		head := storedValue(content[at : at+40])
		if head < 0 {
			continue
		}
		content[at+head+12] ^= 4
		flipped++
	}
	if flipped == 0 {
		t.Fatalf("the database does not contain the %s of %s", part, key)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// request sends a request and returns the status and the body.
func (s *runningServer) request(method, path, token, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// decided returns where everything is placed.
func (s *runningServer) decided() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, object := range s.objects() {
		key := api.KeyOf(object).String()
		switch o := object.(type) {
		case *api.Placement:
			out[key] = strings.Join(o.Status.Clusters, ",")
		case *api.Workload:
			for _, c := range o.Status.Clusters {
				out[key] += fmt.Sprintf("%s=%d ", c.Name, c.Replicas)
			}
		case *api.Cluster:
			if o.Status.Cloud != "" {
				out[key] = o.Status.Cloud
			}
		case *api.MagnumCluster:
			out[key] = o.Status.Project
		}
	}
	return out
}

// damagedWorld returns the data of a stopped server with objects of every kind, in which each decision depends on
// several others.
func damagedWorld(t *testing.T) (dataDir string, keys []api.Key, before map[string]string) {
	t.Helper()
	dataDir = t.TempDir()
	s := start(t, testConfig(dataDir))
	put(s, staticProvider("figures", map[string]float64{"low": 10, "high": 90, "mid": 50}))
	for _, name := range []string{"low", "mid", "high"} {
		put(s, metric(name, "figures", name))
	}
	cloud := func(name, rate string) {
		put(s, &api.Cloud{
			Metadata: api.Metadata{Name: name, Labels: map[string]string{"tier": rate}},
			Spec:     api.CloudSpec{Metrics: []api.MetricRef{{Name: rate, Weight: number(1.0)}}},
		})
	}
	cloud("paris", "high")
	cloud("oslo", "low")
	put(s, cluster("a", "high"))
	put(s, cluster("b", "mid"))
	put(s, cluster("c", "low"))
	hosted := cluster("hosted")
	hosted.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: []string{"tier in (high, low)"}}
	hosted.Spec.InheritLabels = true
	put(s, hosted)
	put(s, &api.ClusterSet{Metadata: api.Metadata{Name: "some"}, Spec: api.ClusterSetSpec{Clusters: []string{"b", "c"}}})
	put(s, &api.PlacementScore{Metadata: api.Metadata{Name: "gpu", Cluster: "c"}, Spec: api.PlacementScoreSpec{Scores: map[string]int64{"gpu": 100}}})
	put(s, placement("shop", "best"))
	inSet := placement("shop", "in-set")
	inSet.Spec.ClusterSets = []string{"some"}
	put(s, inSet)
	byScore := placement("shop", "by-score")
	byScore.Spec.Strategy = api.StrategyPrioritizers
	byScore.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: "exact", Configurations: []api.PrioritizerConfig{
		{Type: "addon", ResourceName: "gpu", ScoreName: "gpu", Weight: number(int64(10))},
	}}
	put(s, byScore)
	put(s, &api.PropagationPolicy{
		Metadata: api.Metadata{Namespace: "shop", Name: "spread"},
		Spec: api.PropagationPolicySpec{
			ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement: api.PropagationPlacement{
				ClusterAffinity:   &api.ClusterAffinity{ClusterNames: []string{"b"}},
				ReplicaScheduling: &api.ReplicaScheduling{Type: "Divided", DivisionPreference: "Weighted"},
			},
		},
	})
	put(s, &api.PropagationPolicy{ // it gets what the other one leaves
		Metadata: api.Metadata{Name: "rest"},
		Spec: api.PropagationPolicySpec{
			ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement:         api.PropagationPlacement{ClusterAffinity: &api.ClusterAffinity{ClusterNames: []string{"c"}}},
		},
	})
	put(s, &api.Workload{
		Metadata: api.Metadata{Namespace: "shop", Name: "web"},
		Spec:     api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: number(int64(3))},
	})
	for name, rate := range map[string]string{"first": "high", "second": "low"} {
		put(s, &api.OpenStackProject{
			Metadata: api.Metadata{Namespace: "shop", Name: name, Labels: map[string]string{"kind": "any"}},
			Spec:     api.OpenStackProjectSpec{Metrics: []api.MetricRef{{Name: rate, Weight: number(1.0)}}},
		})
	}
	put(s, &api.MagnumCluster{
		Metadata: api.Metadata{Namespace: "shop", Name: "kube"},
		Spec:     api.MagnumClusterSpec{LabelConstraints: []string{"kind is any"}},
	})
	want := map[string]string{
		`placement "shop/best"`: "a", `placement "shop/in-set"`: "b", `placement "shop/by-score"`: "c", `workload "shop/web"`: "b=3 ",
		`cluster "hosted"`: "paris", `magnum_cluster "shop/kube"`: "first",
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("decided: %v", before)
		}
	})
	eventually.True(t, "the placements are decided", func() bool {
		before = s.decided()
		for key, at := range want {
			if before[key] != at {
				return false
			}
		}
		return true
	})
	for _, object := range s.objects() {
		keys = append(keys, api.KeyOf(object))
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	return dataDir, keys, before
}

// Whichever object is damaged, it is named in all places, all others are unchanged, no decision moves, new decisions
// are made, and a PUT or DELETE repairs it.
func TestDamagedObjectIsNamedAndAffectsNoOther(t *testing.T) {
	t.Parallel()
	dataDir, keys, before := damagedWorld(t)
	for _, key := range keys {
		for _, part := range []string{"spec", "status"} {
			if part == "status" && key.Kind != api.KindPlacement && key.Kind != api.KindWorkload && key.Name != "hosted" && key.Kind != api.KindMetric {
				continue // may have none
			}
			t.Run(part+" of "+key.String(), func(t *testing.T) {
				dir := copyDir(t, dataDir)
				flipStored(t, dir, part, key)
				s := start(t, testConfig(dir))
				path := pathOf(key)
				if status, text := s.request("GET", path, "", ""); status != 500 || !strings.Contains(text, `"urn:scheduler:problem:damaged"`) || !strings.Contains(text, key.Path()) {
					t.Errorf("GET %s: %d %s", path, status, text)
				}
				if status, text := s.request("GET", "/readyz", "", ""); status != 200 || !strings.Contains(text, "damaged objects in the store: 1") {
					t.Errorf("/readyz: got %d %s", status, text)
				}
				if _, text := s.request("GET", "/metrics", "", ""); !strings.Contains(text, "\nscheduler_store_damaged_objects 1\n") {
					t.Error("the metric does not count the damaged object")
				}
				var info api.ServerInfo
				if _, text := s.request("GET", "/v1/server", "", ""); json.Unmarshal([]byte(text), &info) != nil || len(info.Damaged) != 1 || info.Damaged[0].Name != key.Name {
					t.Errorf("/v1/server: %s", text)
				}
				if n := strings.Count(s.logs.String(), "a stored object is damaged"); n != 1 {
					t.Errorf("%d log lines, want 1", n)
				}
				put(s, placement("shop", "new"))
				if got := get[*api.Placement](s, placementKey("shop", "new")); len(got.Status.Clusters) != 1 && key.Kind != api.KindMetricsProvider {
					t.Errorf("clusters of a new placement %v", got.Status.Clusters)
				}
				after := s.decided()
				for what, at := range before {
					if what != key.String() && after[what] != at {
						t.Errorf("%s is at %q, it was at %q", what, after[what], at)
					}
				}
				if _, text := s.request("GET", "/v1/namespaces/shop/placements/best", "", ""); key.Name == "a" && !strings.Contains(text, `"MoveHeld"`) {
					t.Errorf("the placement on it says nothing: %s", text)
				}
				var list struct{ Damaged []api.DamagedObject }
				if _, text := s.request("GET", path[:strings.LastIndex(path, "/")], "", ""); json.Unmarshal([]byte(text), &list) != nil || len(list.Damaged) != 1 || list.Damaged[0].Name != key.Name {
					t.Errorf("the list says %v", list.Damaged)
				}
				if status, text := s.request("DELETE", path, "", ""); status != 204 {
					t.Errorf("DELETE: %d %s", status, text)
				}
				if status, text := s.request("GET", path, "", ""); status != 404 {
					t.Errorf("after DELETE: got %d %s, want 404", status, text)
				}
				if _, text := s.request("GET", "/readyz", "", ""); strings.Contains(text, "damaged") {
					t.Errorf("/readyz after DELETE: %s", text)
				}
			})
		}
	}
}

// A damaged object that is written again is there again, and what waited for it
// goes on from where it was.
func TestPutMendsADamagedObject(t *testing.T) {
	t.Parallel()
	dataDir, _, before := damagedWorld(t)
	for _, object := range []api.Object{cluster("a", "high"), metric("high", "figures", "high"), placement("shop", "best")} {
		for _, part := range []string{"spec", "status"} {
			key := api.KeyOf(object)
			t.Run(part+" of "+key.String(), func(t *testing.T) {
				dir := copyDir(t, dataDir)
				flipStored(t, dir, part, key)
				s := start(t, testConfig(dir))
				if _, err := s.client.Put(context.Background(), object, client.PutOptions{Create: true}); err == nil {
					t.Error("a damaged object was created again")
				}
				put(s, object.Copy())
				if status, text := s.request("GET", pathOf(key), "", ""); status != 200 {
					t.Errorf("GET: %d %s", status, text)
				}
				if _, text := s.request("GET", "/readyz", "", ""); strings.Contains(text, "damaged") {
					t.Error(text)
				}
				eventually.True(t, "all decisions are restored", func() bool {
					after := s.decided()
					for what, at := range before {
						if after[what] != at {
							return false
						}
					}
					return true
				})
				if err := s.stop(); err != nil {
					t.Fatal(err)
				}
				again := start(t, testConfig(dir))
				if status, text := again.request("GET", pathOf(key), "", ""); status != 200 {
					t.Errorf("after a restart: got %d %s, want 200", status, text)
				}
			})
		}
	}
}

// A watch reports that a decision is no longer held back, although nothing of the placement is written.
func TestWatchSendsUnstoredChanges(t *testing.T) {
	t.Parallel()
	dataDir, _, _ := damagedWorld(t)
	flipStored(t, dataDir, "spec", api.Key{Kind: api.KindCluster, Name: "a"})
	s := start(t, testConfig(dataDir))
	isHeld := func(p *api.Placement) bool {
		return api.FindCondition(p.Status.Conditions, api.ConditionMoveHeld) != nil
	}
	before := get[*api.Placement](s, placementKey("shop", "best"))
	if !isHeld(before) {
		t.Fatalf("the move is not held: %+v", before.Status.Conditions)
	}
	beside, err := s.client.Put(t.Context(), &api.ClusterSet{Metadata: api.Metadata{Name: "beside"}, Spec: api.ClusterSetSpec{Clusters: []string{"b"}}}, client.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	put(s, cluster("a", "high"))
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	for event, err := range s.client.Watch(ctx, beside.Meta().ResourceVersion, api.KindPlacement) {
		if err != nil {
			t.Fatal(err)
		}
		if best, ok := event.Object.(*api.Placement); ok && best.Metadata.Name == "best" && !isHeld(best) {
			if version := best.Metadata.ResourceVersion; version != before.Metadata.ResourceVersion {
				t.Errorf("version %s was written, so the test checks nothing: previously %s", version, before.Metadata.ResourceVersion)
			}
			return
		}
	}
}

// If the only token is damaged, all requests are rejected. Above all, the server does not become open to everyone.
func TestDamagedTokenIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := strings.TrimSpace(mustCommand(t, "token", "create", "--data-dir", dir, "--role", "admin"))
	token := text[strings.LastIndexAny(text, " \n")+1:]
	id, _, _ := strings.Cut(token, ".")
	flipStored(t, dir, "spec", api.Key{Kind: "token", Name: id})
	s := start(t, testConfig(dir))
	for _, with := range []string{"", token} {
		if status, answer := s.request("GET", "/v1/clusters", with, ""); status != 401 {
			t.Errorf("with %q: got %d %s, want 401", with, status, answer)
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if list := mustCommand(t, "token", "list", "--data-dir", dir); !strings.Contains(list, id) || !strings.Contains(list, "damaged") {
		t.Errorf("the list does not contain the damaged token: %s", list)
	}
	other := strings.TrimSpace(mustCommand(t, "token", "create", "--data-dir", dir, "--role", "admin"))
	mustCommand(t, "token", "revoke", "--data-dir", dir, id)
	again := start(t, testConfig(dir))
	if status, answer := again.request("GET", "/readyz", "", ""); status != 200 || strings.Contains(answer, "damaged") {
		t.Errorf("unexpected answer %d %s", status, answer)
	}
	if status, _ := again.request("GET", "/v1/clusters", other[strings.LastIndexAny(other, " \n")+1:], ""); status != 200 {
		t.Errorf("with the new token: got %d, want 200", status)
	}
}

func pathOf(key api.Key) string {
	info, _ := api.LookupKind(key.Kind)
	switch {
	case info.Scope == api.OfCluster:
		return "/v1/clusters/" + key.Namespace + "/" + info.Collection + "/" + key.Name
	case key.Namespace != "":
		return "/v1/namespaces/" + key.Namespace + "/" + info.Collection + "/" + key.Name
	}
	return "/v1/" + info.Collection + "/" + key.Name
}

func TestCheckCommand(t *testing.T) {
	dir := t.TempDir()
	s := start(t, testConfig(dir))
	put(s, cluster("a"))
	put(s, placement("shop", "web"))
	if code, _, text := command(t, "check", dir); code != 2 || !strings.Contains(text, fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("check of a running server: exit code %d: %s", code, text)
	}
	backup := filepath.Join(t.TempDir(), "backup.tar")
	mustCommand(t, "backup", "--endpoint", s.url, backup)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, backup} {
		if text := mustCommand(t, "check", path); !strings.Contains(text, "nothing is damaged") {
			t.Error(text)
		}
	}
	damaged := copyDir(t, dir)
	flipStored(t, damaged, "spec", api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"})
	if code, text, _ := command(t, "check", damaged); code != 1 || !strings.Contains(text, `spec of placement "shop/web"`) {
		t.Errorf("exit code %d: %s", code, text)
	}
	content, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(backup, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text, _ := command(t, "check", backup); code != 1 || !strings.Contains(text, "SHA-256") {
		t.Errorf("exit code %d: %s", code, text)
	}
	for _, args := range [][]string{{"check"}, {"check", filepath.Join(dir, "absent")}, {"check", t.TempDir()}} {
		if code, _, text := command(t, args...); code != 2 || text == "" {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
	// A damaged page gives a clear error, from check and at the start.
	db := filepath.Join(dir, "etcd", "member", "snap", "db")
	if content, err = os.ReadFile(db); err != nil {
		t.Fatal(err)
	}
	for page := 2 * os.Getpagesize(); page < len(content); page += os.Getpagesize() {
		content[page+8] ^= 0x40 // the type of the page
	}
	if err := os.WriteFile(db, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text, _ := command(t, "check", dir); code != 1 || !strings.Contains(text, db+": page ") {
		t.Errorf("exit code %d: %s", code, text)
	}
	code, _, text := command(t, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(text, db+": page ") || !strings.Contains(text, "scheduler-server restore") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
