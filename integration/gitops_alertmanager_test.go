//go:build integration && gitops

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/proxytest"
)

// alertmanagerConfiguration tells its receiver of each alert by itself, at once.
const alertmanagerConfiguration = `
route: {receiver: pager, group_by: ["..."], group_wait: 0s, group_interval: 200ms, repeat_interval: 24h}
receivers: [{name: pager, webhook_configs: [{url: %q, send_resolved: true}]}]
`

// alertmanagerServer is a real Alertmanager, with somebody whom it tells of alerts.
type alertmanagerServer struct {
	t       *testing.T
	dir     string
	address string
	cmd     *exec.Cmd
	output  *logtest.Buffer

	mu    sync.Mutex
	paged map[string][]string // what its receiver was told, by alert
}

// raisedAlert is an alert as Alertmanager shows and tells it.
type raisedAlert struct {
	Labels      map[string]string
	Annotations map[string]string
	StartsAt    time.Time
	EndsAt      time.Time
}

// id names an alert in the test.
func (a *raisedAlert) id() string { return a.Labels["alertname"] + " " + a.Labels["name"] }

func startAlertmanager(t *testing.T) *alertmanagerServer {
	t.Helper()
	a := &alertmanagerServer{t: t, dir: t.TempDir(), address: proxytest.FreeAddress(t), output: &logtest.Buffer{}, paged: map[string][]string{}}
	pager := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var told struct {
			Status string
			Alerts []raisedAlert
		}
		if err := json.NewDecoder(r.Body).Decode(&told); err != nil || len(told.Alerts) != 1 {
			t.Errorf("the receiver was told %+v, %v", told, err)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.paged[told.Alerts[0].id()] = append(a.paged[told.Alerts[0].id()], told.Status)
	}))
	t.Cleanup(pager.Close)
	if err := os.WriteFile(filepath.Join(a.dir, "alertmanager.yml"), fmt.Appendf(nil, alertmanagerConfiguration, pager.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.stop()
		if t.Failed() {
			t.Logf("the end of the log of Alertmanager:\n%s", a.output.Tail())
		}
	})
	a.start()
	return a
}

// start starts it, always at the same address and with the same data.
func (a *alertmanagerServer) start() {
	a.t.Helper()
	a.cmd = exec.Command(testbedBinary(a.t, "alertmanager", "scripts/build-alertmanager.sh"), "--config.file="+filepath.Join(a.dir, "alertmanager.yml"),
		"--storage.path="+filepath.Join(a.dir, "data"), "--web.listen-address="+a.address, "--cluster.listen-address=")
	a.cmd.Stdout, a.cmd.Stderr = a.output, a.output
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	eventually.True(a.t, "Alertmanager is ready", func() bool {
		resp, err := http.Get("http://" + a.address + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// stop ends it as an operator would.
func (a *alertmanagerServer) stop() {
	a.t.Helper()
	if a.cmd == nil {
		return
	}
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		a.t.Error(err)
	}
	if err := a.cmd.Wait(); err != nil {
		a.t.Errorf("Alertmanager: %v", err)
	}
	a.cmd = nil
}

// active returns the alerts that are active.
func (a *alertmanagerServer) active() map[string]raisedAlert {
	a.t.Helper()
	resp, err := http.Get("http://" + a.address + "/api/v2/alerts")
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	var list []raisedAlert
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		a.t.Fatal(resp.Status, err)
	}
	all := map[string]raisedAlert{}
	for _, one := range list {
		if other, ok := all[one.id()]; ok {
			a.t.Errorf("two alerts about one thing: %+v and %+v", other, one)
		}
		all[one.id()] = one
	}
	return all
}

// raises waits until exactly these alerts are active, besides those about moves, which end by themselves, and returns all.
func (a *alertmanagerServer) raises(ids ...string) map[string]raisedAlert {
	a.t.Helper()
	var all map[string]raisedAlert
	slices.Sort(ids)
	eventually.True(a.t, fmt.Sprintf("the active alerts are %q", ids), func() bool {
		all = a.active()
		lasting := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(id string) bool { return strings.HasPrefix(id, "SchedulerMoved ") })
		return slices.Equal(lasting, ids)
	})
	return all
}

// pages returns what the receiver was told of an alert.
func (a *alertmanagerServer) pages(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.paged[id], ", ")
}

// tells waits until the receiver was told this of an alert, and nothing else.
func (a *alertmanagerServer) tells(id, want string) {
	a.t.Helper()
	eventually.True(a.t, fmt.Sprintf("the receiver is told of %s: %s", id, want), func() bool { return a.pages(id) == want })
}

// TestGitOpsAlertmanager has a real Alertmanager told of a decision that moves, of one that cannot be made, and of a
// cluster that is offline, with the labels in the guide: each alert is raised once, and resolved when it is over, although
// the server is killed and Alertmanager is away meanwhile.
func TestGitOpsAlertmanager(t *testing.T) {
	const moved, undecided, offline = "SchedulerMoved web", "SchedulerUndecided lost", "SchedulerClusterOffline oslo"
	a := startAlertmanager(t)
	dir := t.TempDir()
	start := func() *process { return startServer(t, dir) }
	p := start()

	var down sync.Map // probed clusters that are
	probed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, is := down.Load(strings.TrimPrefix(r.URL.Path, "/")); is {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(probed.Close)
	becomes := func(name string, state api.ClusterState) {
		t.Helper()
		eventually.True(t, name+" is "+string(state), func() bool {
			return get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: name}).Status.State == state
		})
	}
	for _, name := range []string{"oslo", "bern"} {
		c := cluster(name, "probed")
		c.Spec.Health = &api.HealthSpec{URL: probed.URL + "/" + name, Interval: "2s", FailureThreshold: 2, SuccessThreshold: 1}
		put(p, c)
		becomes(name, api.StateOnline)
	}
	rates := func(berlin, paris float64) {
		put(p, staticProvider("rates", map[string]float64{"berlin": berlin, "paris": paris}))
	}
	rates(90, 10)
	for _, name := range []string{"berlin", "paris"} {
		put(p, metric(name, "rates", name, api.FailureExclude))
		put(p, cluster(name, "shop", name))
	}
	notification := put(p, &api.Notification{Metadata: api.Metadata{Name: "ops"}, Spec: api.NotificationSpec{
		Events:       []api.NotificationEvent{api.EventMoved, api.EventUndecided, api.EventClusterOffline},
		Selector:     &api.NotificationSelector{Names: []string{"web", "lost", "brief", "stuck", "oslo", "bern"}},
		Alertmanager: &api.AlertmanagerDestination{URL: "http://" + a.address, Labels: map[string]string{"severity": "page"}},
	}})
	delivering := func(want api.ConditionStatus, reason string) {
		t.Helper()
		eventually.True(t, "the notification says "+reason, func() bool {
			c := api.FindCondition(get[*api.Notification](p, api.KeyOf(notification)).Status.Conditions, api.ConditionDelivering)
			return c != nil && c.Status == want && c.Reason == reason
		})
	}
	delivering(api.ConditionTrue, api.ReasonDelivering)
	is := func(got raisedAlert, summary string, labels map[string]string) {
		t.Helper()
		labels["severity"] = "page"
		if !maps.Equal(got.Labels, labels) || !strings.HasPrefix(got.Annotations["summary"], summary) {
			t.Errorf("the alert is %+v, want the labels %v and the summary %q", got, labels, summary)
		}
	}

	t.Run("a decision moves", func(t *testing.T) {
		labels := map[string]string{"alertname": "SchedulerMoved", "event": "moved", "kind": "placement", "namespace": "shop", "name": "web"}
		put(p, placement("web", "shop"))
		var first, second raisedAlert
		eventually.True(t, "the alert is raised", func() bool {
			first = a.active()[moved]
			return first.Labels != nil
		})
		is(first, "placement shop/web was decided: berlin", labels)
		rates(10, 90)
		eventually.True(t, "the alert is about the second move", func() bool {
			second = a.active()[moved]
			return second.Annotations["summary"] != first.Annotations["summary"]
		})
		is(second, "placement shop/web moved: berlin -> paris", labels)
		if !second.StartsAt.Equal(first.StartsAt) || !second.EndsAt.After(first.EndsAt) {
			t.Errorf("the alert about both moves lasts from %s to %s, that about the first one from %s to %s", second.StartsAt, second.EndsAt, first.StartsAt, first.EndsAt)
		}
		a.tells(moved, "firing")
	})

	t.Run("nothing fits", func(t *testing.T) {
		put(p, placement("lost", "lost"))
		all := a.raises(undecided)
		is(all[undecided], "nothing fits placement shop/lost: ", map[string]string{
			"alertname": "SchedulerUndecided", "event": "undecided", "kind": "placement", "namespace": "shop", "name": "lost",
		})
		a.tells(undecided, "firing")

		// All of it comes again, as after a crash.
		var attempts api.NotificationAttempts
		eventually.True(t, "the deliveries are listed", func() bool {
			if err := p.client.Call(t.Context(), http.MethodGet, "/v1/notifications/ops/attempts", nil, &attempts); err != nil {
				t.Fatal(err)
			}
			return len(attempts.Items) == 3
		})
		for _, attempt := range slices.Backward(attempts.Items) {
			var again api.NotificationAttempt
			err := p.client.Call(t.Context(), http.MethodPost, "/v1/notifications/ops/attempts/"+attempt.ID+"/redeliver", nil, &again)
			if err != nil || again.Result != api.DeliveryDone {
				t.Fatal(again, err)
			}
		}
		if now := a.active(); !maps.EqualFunc(now, all, func(x, y raisedAlert) bool {
			return maps.Equal(x.Labels, y.Labels) && maps.Equal(x.Annotations, y.Annotations) && x.StartsAt.Equal(y.StartsAt) && x.EndsAt.Equal(y.EndsAt)
		}) {
			t.Errorf("sent again, the alerts are %v, before %v", now, all)
		}
	})

	t.Run("a cluster is offline", func(t *testing.T) {
		down.Store("oslo", true)
		is(a.raises(undecided, offline)[offline], "cluster oslo is "+string(api.StateUnhealthy), map[string]string{
			"alertname": "SchedulerClusterOffline", "event": "cluster_offline", "kind": "cluster", "name": "oslo", "cluster": "oslo",
		})
		a.tells(offline, "firing")
	})

	t.Run("the server is killed", func(t *testing.T) {
		p.kill()
		p = start()
		put(p, cluster("rome", "lost"))
		a.raises(offline)
		a.tells(undecided, "firing, resolved")
		a.tells(offline, "firing")
		a.tells(moved, "firing")
	})

	t.Run("Alertmanager is away", func(t *testing.T) {
		const bern, stuck = "SchedulerClusterOffline bern", "SchedulerUndecided stuck"
		put(p, placement("stuck", "stuck"))
		a.tells(stuck, "firing")
		a.stop()
		down.Delete("oslo")
		becomes("oslo", api.StateOnline)
		delivering(api.ConditionFalse, api.ReasonDeliveryFails)
		down.Store("bern", true)
		becomes("bern", api.StateUnhealthy)
		if err := p.client.Delete(t.Context(), api.Key{Kind: api.KindCluster, Name: "rome"}); err != nil {
			t.Fatal(err)
		}
		put(p, placement("brief", "none"))
		for _, name := range []string{"lost", "brief"} {
			eventually.True(t, name+" is undecided", func() bool {
				c := api.FindCondition(get[*api.Placement](p, placementKey(name)).Status.Conditions, api.ConditionScheduled)
				return c != nil && c.Status == api.ConditionFalse
			})
		}
		if err := p.client.Delete(t.Context(), placementKey("brief")); err != nil {
			t.Fatal(err)
		}
		a.start()
		delivering(api.ConditionTrue, api.ReasonDelivering)
		a.tells(offline, "firing, resolved")
		a.tells(undecided, "firing, resolved, firing")
		a.tells(bern, "firing")
		// It has forgotten what was raised before: the end of that is told all the same.
		a.raises(undecided, bern)
		down.Delete("bern")
		put(p, cluster("rome", "lost"))
		put(p, cluster("turin", "stuck"))
		a.tells(undecided, "firing, resolved, firing, resolved")
		a.tells(bern, "firing, resolved")
		a.tells(stuck, "firing, resolved")
		a.raises()
	})
}
