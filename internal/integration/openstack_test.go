//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

const openStackScripts = "../../scripts/openstack"

const authURL = "http://127.0.0.1:5000/v3"

// openStackState returns the directory of the OpenStack's state.
func openStackState(t *testing.T) string {
	t.Helper()
	if state := os.Getenv("OSK"); state != "" {
		return state
	}
	testbed := os.Getenv("SCHEDULER_TESTBED")
	if testbed == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		testbed = filepath.Join(home, ".cache", "scheduler-testbed")
	}
	return filepath.Join(testbed, "openstack")
}

// script runs one of the OpenStack's scripts.
func script(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "5", "bash", "-c", `. "$0/env.sh"; exec "$0/$1" "${@:2}"`, openStackScripts, name}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Processes in the background may keep the output open no longer than this.
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, stdout.String(), stderr.String())
	}
	return stdout.Bytes()
}

// startOpenStack makes sure that the OpenStack runs and has its contents. If it was already running, it keeps running
// afterwards.
func startOpenStack(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(openStackState(t), "deb", "complete")); err != nil {
		t.Fatalf("no OpenStack: run scripts/build-openstack.sh (%v)", err)
	}
	resp, err := http.Get(authURL)
	if err == nil {
		resp.Body.Close()
	} else {
		t.Cleanup(func() { script(t, "stop.sh") })
	}
	script(t, "start.sh")
	script(t, "seed.sh")
}

// truth is what the OpenStack's own clients report.
type truth struct {
	Zones    map[string]map[string][3]int64 `json:"zones"` // total, allocatable, used
	Projects map[string][]string            `json:"projects"`
	Flavors  []string                       `json:"flavors"`
}

func askOpenStack(t *testing.T) truth {
	t.Helper()
	var out truth
	if err := json.Unmarshal(script(t, "client.py", "figures"), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// zoneFigures converts the amounts in a status to the form of truth.
func zoneFigures(t *testing.T, region *api.CloudRegion) map[string]map[string][3]int64 {
	t.Helper()
	units := map[string]int64{"cpu": 1, "memory": 1 << 20, "floating_ips": 1}
	out := map[string]map[string][3]int64{}
	for _, zone := range region.Zones {
		out[zone.Name] = map[string][3]int64{}
		for name := range zone.Capacity {
			unit := units[name]
			if unit == 0 {
				unit = 1 << 30
			}
			var row [3]int64
			for i, q := range []api.Quantity{zone.Capacity[name], zone.Allocatable[name], zone.Allocated[name]} {
				milli, err := q.Milli()
				if err != nil {
					t.Fatal(err)
				}
				row[i] = milli.Units() / unit
			}
			out[zone.Name][name] = row
			if left, err := zone.Available[name].Milli(); err != nil || left.Units()/unit != max(row[1]-row[2], 0) {
				t.Errorf("%s of %s: %s available, want the rest of %v (%v)", name, zone.Name, zone.Available[name], row, err)
			}
		}
	}
	return out
}

func cloudAccess(password string) *api.OpenStackSpec {
	return &api.OpenStackSpec{AuthURL: authURL, Username: "admin", Password: api.NewSecret(password), ProjectName: "admin", Interval: "2s"}
}

var realCloud = api.Key{Kind: api.KindCloud, Name: "real"}

func collected(c *api.Cloud) string {
	if condition := api.FindCondition(c.Status.Conditions, api.ConditionCollected); condition != nil {
		return condition.Reason + ": " + condition.Message
	}
	return ""
}

// TestOpenStack runs the collector against a real OpenStack.
func TestOpenStack(t *testing.T) {
	t.Parallel()
	startOpenStack(t)
	p := startServer(t, t.TempDir())
	cloud := func() *api.Cloud { return get[*api.Cloud](p, realCloud) }
	region := func(c *api.Cloud) *api.CloudRegion {
		t.Helper()
		r := c.Status.Region("RegionOne")
		if r == nil {
			t.Fatalf("no RegionOne: %+v", c.Status)
		}
		return r
	}
	put(p, &api.Cloud{Metadata: api.Metadata{Name: "real"}, Spec: api.CloudSpec{OpenStack: cloudAccess("osk")}})

	t.Run("capacity equals that of OpenStack's own clients", func(t *testing.T) {
		// Cinder's scheduler takes a minute to notice new volumes.
		var got, want map[string]map[string][3]int64
		for deadline := time.Now().Add(eventually.Limit); time.Now().Before(deadline); time.Sleep(2 * time.Second) { //nolint:forbidigo // the clients take long to start
			want = askOpenStack(t).Zones
			got = zoneFigures(t, region(cloud()))
			if reflect.DeepEqual(got, want) && want["az-a"]["storage/ssd"][2] >= 700 {
				break
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("collected\n%v\nwant as from the clients\n%v", got, want)
		}
		if zones := slices.Sorted(maps.Keys(got)); !slices.Equal(zones, []string{"az-a", "az-b", "nova"}) {
			t.Errorf("unexpected zones %v", zones)
		}
		if got := got["az-a"]["storage/ssd"]; got[0] != 6000 || got[2] < 700 {
			t.Errorf("the volumes are not included: %v", got)
		}
		var flavors []string
		for _, f := range region(cloud()).Flavors {
			flavors = append(flavors, f.Name)
		}
		if want := askOpenStack(t).Flavors; !slices.Equal(flavors, want) {
			t.Errorf("flavors %v, want %v", flavors, want)
		}
	})

	t.Run("projects equal those of OpenStack's own clients", func(t *testing.T) {
		live, err := p.client.OpenStackProjects(t.Context(), "real", api.LiveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, project := range live.Projects {
			got[project.Name] = append([]string{}, project.Tags...)
			if (project.Clusters == 1) != (project.Name == "team-red" || project.Name == "team-blue") {
				t.Errorf("%s has %d Magnum clusters", project.Name, project.Clusters)
			}
		}
		if want := askOpenStack(t).Projects; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		tagged, err := p.client.OpenStackProjects(t.Context(), "real", api.LiveOptions{Tags: []string{"ocm", "team:red"}})
		if err != nil || len(tagged.Projects) != 1 || tagged.Projects[0].Name != "team-red" || len(tagged.Templates) != 2 {
			t.Errorf("with two tags: %+v, %v", tagged, err)
		}
	})

	t.Run("a new machine is included", func(t *testing.T) {
		before := region(cloud())
		script(t, "client.py", "boot", "integration", "az-b", "k8s.node")
		t.Cleanup(func() { script(t, "client.py", "delete", "integration") })
		took := eventually.True(t, "8 more CPUs of az-b are in use", func() bool {
			return used(t, region(cloud()), "az-b", "cpu") == used(t, before, "az-b", "cpu")+8
		})
		t.Logf("included %s after it ran", took.Round(100*time.Millisecond))
		after := region(cloud())
		if !after.Zone("az-a").ObservedAt.Equal(*before.Zone("az-a").ObservedAt) {
			t.Error("az-a was written, too")
		}
	})

	t.Run("only changes are pushed", func(t *testing.T) { testPushFromOpenStack(t, p) })

	t.Run("a wrong password is reported", func(t *testing.T) {
		wrong := put(p, &api.Cloud{Metadata: api.Metadata{Name: "real"}, Spec: api.CloudSpec{OpenStack: cloudAccess("not-osk")}})
		want := `Unauthorized: logging in at ` + authURL + `: the user "admin" of the domain "Default" is rejected: correct openstack.password, or the names of the user and of the project`
		if got := collected(wrong); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		_, err := p.client.OpenStackProjects(t.Context(), "real", api.LiveOptions{})
		if problem := (*api.Problem)(nil); !asProblem(err, &problem) || problem.Status != http.StatusBadGateway || !strings.Contains(problem.Detail, "correct openstack.password") {
			t.Errorf("live: %v", err)
		}
		right := put(p, &api.Cloud{Metadata: api.Metadata{Name: "real"}, Spec: api.CloudSpec{OpenStack: cloudAccess("osk")}})
		if got := collected(right); !strings.HasPrefix(got, "Collected: ") {
			t.Errorf("after the correction: %s", got)
		}
		if strings.Contains(p.stderr.Tail(), "not-osk") {
			t.Error("the log contains the password")
		}
	})

	t.Run("a member learns which role is missing", func(t *testing.T) {
		spec := cloudAccess("osk")
		spec.Username, spec.ProjectName = "team-red-user", "team-red"
		member := put(p, &api.Cloud{Metadata: api.Metadata{Name: "member"}, Spec: api.CloudSpec{OpenStack: spec}})
		if got := collected(member); !strings.HasPrefix(got, `Unauthorized: listing the hypervisors: the user "team-red-user" of the domain "Default" is not allowed to do that`) {
			t.Errorf("got %s", got)
		}
	})

	// This must be last, because it takes a while until the host is back.
	t.Run("a dead host is not counted", func(t *testing.T) {
		before := region(cloud()).Zone("az-b")
		killHost(t, "cmp-b1")
		t.Cleanup(func() { script(t, "start.sh") })
		took := eventually.True(t, "one host less in az-b", func() bool { return region(cloud()).Zone("az-b").Hosts == before.Hosts-1 })
		t.Logf("it was gone %s after it was killed", took.Round(time.Second))
		if got, want := zoneFigures(t, region(cloud())), askOpenStack(t).Zones; got["az-b"]["cpu"][0] != 96 || got["az-b"]["cpu"] != want["az-b"]["cpu"] || got["az-b"]["memory"] != want["az-b"]["memory"] {
			t.Errorf("collected %v, want %v as from the clients", got["az-b"], want["az-b"])
		}
	})
}

func used(t *testing.T, region *api.CloudRegion, zone, resource string) int64 {
	t.Helper()
	return zoneFigures(t, region)[zone][resource][2]
}

func asProblem(err error, problem **api.Problem) bool {
	p, ok := err.(*api.Problem) //nolint:errorlint // the client returns it unwrapped
	*problem = p
	return ok
}

// killHost kills a compute service like a power cut. Its script would restart it, so the whole session is killed.
func killHost(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(openStackState(t), "run", "nova-compute-"+name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	session, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-session, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// testPushFromOpenStack collects the same cloud outside the server, and observes the connection between the two.
func testPushFromOpenStack(t *testing.T, p *process) {
	put(p, &api.Cloud{Metadata: api.Metadata{Name: "pushed"}, Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{AuthURL: authURL}}})
	var mu sync.Mutex
	var pushes []api.CloudReport
	seen := func() []api.CloudReport {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(pushes)
	}
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	wire := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		var report api.CloudReport
		if err := json.Unmarshal(data, &report); err != nil {
			t.Errorf("pushed %s: %v", data, err)
		}
		// Without changes, the collector only asks whether the server still has the amounts.
		if len(report.Regions) > 0 || report.Full || report.Error != "" {
			mu.Lock()
			pushes = append(pushes, report)
			mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(wire.Close)
	cmd := exec.Command(servertest.Binary(t), "collect", "--server", wire.URL, "--cloud", "pushed", "--auth-url", authURL,
		"--username", "admin", "--project-name", "admin", "--interval", "1s")
	cmd.Env = append(os.Environ(), "SCHEDULER_PASSWORD=osk")
	output := &logtest.Buffer{}
	cmd.Stderr = output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the collector exited with %v:\n%s", err, output.Tail())
		}
	})
	eventually.True(t, "a first push", func() bool { return len(seen()) > 0 })
	pushed := api.Key{Kind: api.KindCloud, Name: "pushed"}
	eventually.True(t, "the same capacity as the server collects itself", func() bool {
		a, b := get[*api.Cloud](p, pushed).Status.Region("RegionOne"), get[*api.Cloud](p, realCloud).Status.Region("RegionOne")
		return a != nil && b != nil && reflect.DeepEqual(zoneFigures(t, a), zoneFigures(t, b))
	})
	if first := seen()[0]; !first.Full || len(first.Regions) != 1 || len(first.Regions[0].Zones) != 3 {
		t.Errorf("unexpected first push %+v", first)
	}
	booted := len(seen())
	script(t, "client.py", "boot", "pushed", "az-a", "m1.large")
	t.Cleanup(func() { script(t, "client.py", "delete", "pushed") })
	// Other zones change, too: what their hosts have left follows from the machine that all of this runs on.
	eventually.True(t, "a push of the change", func() bool {
		return slices.ContainsFunc(seen()[booted:], func(report api.CloudReport) bool {
			return slices.ContainsFunc(report.Regions, func(r api.CloudRegionReport) bool {
				return slices.ContainsFunc(r.Zones, func(zone api.CloudZone) bool { return zone.Name == "az-a" })
			})
		})
	})
	known := map[string]api.CloudZone{}
	var sequence int64
	for i, report := range seen() {
		checked := i >= booted && report.Sequence != sequence // what was not answered is sent again
		sequence = report.Sequence
		if checked && report.Full {
			t.Errorf("everything was pushed again: %+v", report)
		}
		for _, r := range report.Regions {
			if checked && (r.Full || r.Flavors != nil || r.VolumeTypes != nil) {
				t.Errorf("flavors, volume types or all zones were pushed without a change: %+v", r)
			}
			for _, zone := range r.Zones {
				zone.ObservedAt = nil
				path := r.Name + "/" + zone.Name
				if checked && reflect.DeepEqual(known[path], zone) {
					t.Errorf("%s was pushed without a change: %+v", path, zone)
				}
				known[path] = zone
			}
		}
	}
	var problem *api.Problem
	if _, err := p.client.ReportCloud(context.Background(), "real", api.CloudReport{Collector: "c", Sequence: 1, Full: true}); !asProblem(err, &problem) || problem.Status != http.StatusUnprocessableEntity {
		t.Errorf("push for a cloud that the server collects itself: %v", err)
	}
	if err := p.client.Delete(context.Background(), pushed); err != nil {
		t.Error(err)
	}
}
