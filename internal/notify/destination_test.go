package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
)

// afterwards writes a notification whose events have all happened when it is delivered, so that they are delivered
// together.
func (w *world) afterwards(spec string, happens func()) {
	w.t.Helper()
	n := w.notification("ops", `"paused":true,`+spec)
	w.run()
	w.is("ops", api.ReasonPaused)
	happens()
	resumed := *n
	resumed.Spec.Paused, resumed.Spec.Settle = false, "1s"
	w.put(&resumed)
}

// moves are what happens in these tests.
func (w *world) moves() {
	web := w.placement("web")
	w.move(web, []string{"berlin"})
	w.move(w.placement("api"), []string{"rome"})
	w.move(web, []string{}, api.Condition{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonNoSuitableClusters, Message: "0 of 3 clusters fit: 3 lack <x>"})
}

func sameJSON(t *testing.T, body []byte, want string) {
	t.Helper()
	var got, wanted any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %s, want %s", body, want)
	}
}

func TestSlack(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	w.afterwards(fmt.Sprintf(`"slack":{"url":%q}`, to.URL+"/services/T0/B0/x"), w.moves)
	r := to.await(t, 1)[0]
	sameJSON(t, r.body, `{"text":"placement shop/web was decided: nowhere\nplacement shop/api was decided: rome\nnothing fits placement shop/web: 0 of 3 clusters fit: 3 lack &lt;x&gt;"}`)
	if r.Method != http.MethodPost || r.URL.Path != "/services/T0/B0/x" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
	}
}

// A run is started once, and not while another one waits for its turn.
func TestHCPTerraform(t *testing.T) {
	w := newWorld(t)
	to := newReceiver(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonAPI)
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"data":{"id":"run-CZcmD7eagjhyX0vN","type":"runs"}}`)
		case n == 1:
			_, _ = io.WriteString(w, `{"data":[]}`)
		default:
			_, _ = io.WriteString(w, `{"data":[{"id":"run-CZcmD7eagjhyX0vN","type":"runs","attributes":{"status":"pending"}}]}`)
		}
	})
	w.afterwards(fmt.Sprintf(`"hcp_terraform":{"address":%q,"workspace_id":"ws-6jrRyVDv1J8zQMB5","token":"t0k3n","auto_apply":true}`, to.URL), func() { w.move(w.placement("web"), []string{"berlin"}) })
	requests := to.await(t, 2)
	if r := requests[0]; r.Method != http.MethodGet || r.URL.Path != "/api/v2/workspaces/ws-6jrRyVDv1J8zQMB5/runs" || r.URL.Query().Get("filter[status]") != "pending,plan_queued" || r.Header.Get("Authorization") != "Bearer t0k3n" {
		t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
	}
	r := requests[1]
	sameJSON(t, r.body, `{"data":{"type":"runs","attributes":{"message":"scheduler: placement shop/web was decided: berlin","auto-apply":true},
		"relationships":{"workspace":{"data":{"type":"workspaces","id":"ws-6jrRyVDv1J8zQMB5"}}}}}`)
	if r.Method != http.MethodPost || r.URL.Path != "/api/v2/runs" || r.Header.Get("Authorization") != "Bearer t0k3n" || r.Header.Get("Content-Type") != jsonAPI {
		t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
	}
	w.move(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, []string{"paris"})
	if r := to.await(t, 3)[2]; r.Method != http.MethodGet {
		t.Errorf("got %s %s", r.Method, r.URL)
	}
	w.is("ops", api.ReasonDelivering)
	w.move(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, []string{"rome"})
	if r := to.await(t, 4)[3]; r.Method != http.MethodGet {
		t.Errorf("a second run was started: %s %s", r.Method, r.URL)
	}
}

func TestGitHub(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	w.afterwards(fmt.Sprintf(`"github":{"address":%q,"repository":"acme/infrastructure","event_type":"scheduler-moved","token":"t0k3n"}`, to.URL+"/api/v3/"), w.moves)
	r := to.await(t, 1)[0]
	if r.Method != http.MethodPost || r.URL.Path != "/api/v3/repos/acme/infrastructure/dispatches" || r.Header.Get("Authorization") != "Bearer t0k3n" ||
		r.Header.Get("Accept") != "application/vnd.github+json" || r.Header.Get("X-GitHub-Api-Version") != "2022-11-28" {
		t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
	}
	// The published schema: event_type from 1 to 100 characters, client_payload an object with at most 10 members.
	var body struct {
		EventType     string                     `json:"event_type"`
		ClientPayload map[string]json.RawMessage `json:"client_payload"`
	}
	r.decode(t, &body)
	var events []data
	if err := json.Unmarshal(body.ClientPayload["events"], &events); err != nil {
		t.Fatal(err)
	}
	if body.EventType != "scheduler-moved" || len(body.ClientPayload) > 10 || len(events) != 3 || events[1].Summary != "placement shop/api was decided: rome" || string(body.ClientPayload["count"]) != "3" {
		t.Errorf("got %s", r.body)
	}
}

// GitHub refuses a payload of more than 64 KiB. The number of events is that of all.
func TestLargePayload(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	w.afterwards(fmt.Sprintf(`"github":{"address":%q,"repository":"acme/infrastructure","token":"t0k3n"}`, to.URL), func() {
		for n := range maxLines {
			clusters := make([]string, maxClusters)
			for i := range clusters {
				clusters[i] = fmt.Sprintf("cluster-%03d-%s", i, strings.Repeat("x", 40))
			}
			w.move(w.placement(fmt.Sprintf("p-%d", n)), clusters)
		}
	})
	r := to.await(t, 1)[0]
	var body dispatch
	r.decode(t, &body)
	if n := len(body.ClientPayload.Events); len(r.body) > 1<<16 || n == 0 || n == maxLines || body.ClientPayload.Count != maxLines {
		t.Errorf("%d bytes with %d events of %d", len(r.body), n, body.ClientPayload.Count)
	}
}

func TestGitLab(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	w.afterwards(fmt.Sprintf(`"gitlab":{"address":%q,"project":"acme/infrastructure","ref":"main","variables":{"ENV":"prod"},"token":"t0k3n"}`, to.URL), w.moves)
	r := to.await(t, 1)[0]
	if r.Method != http.MethodPost || r.URL.EscapedPath() != "/api/v4/projects/acme%2Finfrastructure/trigger/pipeline" {
		t.Errorf("got %s %s", r.Method, r.URL.EscapedPath())
	}
	form, err := url.ParseQuery(string(r.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"token": "t0k3n", "ref": "main", "variables[ENV]": "prod", "variables[SCHEDULER_NOTIFICATION]": "ops", "variables[SCHEDULER_EVENTS]": "moved,undecided",
	} {
		if got := form.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if message := form.Get("variables[SCHEDULER_MESSAGE]"); strings.Count(message, "\n") != 2 {
		t.Errorf("got %q", message)
	}
}

func TestAtlantis(t *testing.T) {
	for spec, want := range map[string]string{
		`"projects":["prod"]`: `{"Repository":"acme/infrastructure","Ref":"main","Type":"Github","Projects":["prod"]}`,
		`"directories":["."]`: `{"Repository":"acme/infrastructure","Ref":"main","Type":"Github","Paths":[{"Directory":".","Workspace":"default"}]}`,
	} {
		w, to := newWorld(t), newReceiver(t, nil)
		w.afterwards(fmt.Sprintf(`"atlantis":{"url":%q,"repository":"acme/infrastructure","ref":"main","token":"t0k3n",%s}`, to.URL, spec), w.moves)
		r := to.await(t, 1)[0]
		sameJSON(t, r.body, want)
		if r.Method != http.MethodPost || r.URL.Path != "/api/plan" || r.Header.Get("X-Atlantis-Token") != "t0k3n" {
			t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
		}
	}
}

// Without the secret that a destination asks for, nothing is sent, and the status says which.
func TestMissingSecret(t *testing.T) {
	for block, spec := range map[string]string{
		"slack.url": `"slack":{}`, "hcp_terraform.token": `"hcp_terraform":{"workspace_id":"ws-1"}`, "github.token": `"github":{"repository":"a/b"}`,
		"gitlab.token": `"gitlab":{"project":"1","ref":"main"}`, "atlantis.token": `"atlantis":{"url":"http://127.0.0.1:1","repository":"a/b","ref":"main","projects":["x"]}`,
	} {
		w := newWorld(t)
		w.afterwards(spec, func() { w.move(w.placement("web"), []string{"berlin"}) })
		w.is("ops", api.ReasonDeliveryFails)
		if c := w.status("ops").Conditions[0]; !strings.HasPrefix(c.Message, "spec."+block+" is not set") {
			t.Errorf("%s: got %q", block, c.Message)
		}
		w.stop()
	}
}

// What recovers resolves the alert that it raised: it has the same labels, and ends.
func TestAlertmanager(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	n := w.notification("ops", fmt.Sprintf(`"alertmanager":{"url":%q,"labels":{"severity":"page"},"expire_after":"2h"}`, to.URL+"/"))
	n.Spec.Events = []api.NotificationEvent{api.EventUndecided} // alerts are resolved all the same
	w.put(n)
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	nothing := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonNoSuitableClusters, Message: "0 of 3 clusters fit"}
	w.move(web, nil, nothing)
	raised := to.await(t, 1)[0]
	w.move(web, []string{"berlin"})
	resolved := to.await(t, 2)[1]
	var first, second []alert
	raised.decode(t, &first)
	resolved.decode(t, &second)
	if raised.Method != http.MethodPost || raised.URL.Path != "/api/v2/alerts" || len(first) != 1 || len(second) != 1 {
		t.Fatalf("got %s %s %s, %s", raised.Method, raised.URL, raised.body, resolved.body)
	}
	labels := map[string]string{"alertname": "SchedulerUndecided", "event": "undecided", "kind": "placement", "namespace": "shop", "name": "web", "severity": "page"}
	if !reflect.DeepEqual(first[0].Labels, labels) || !reflect.DeepEqual(second[0].Labels, labels) {
		t.Errorf("got %s, %s", raised.body, resolved.body)
	}
	if got := first[0].EndsAt.Sub(first[0].StartsAt); got != 2*time.Hour || second[0].EndsAt.After(time.Now()) || first[0].Annotations["summary"] != "nothing fits placement shop/web: 0 of 3 clusters fit" {
		t.Errorf("got %s, %s", raised.body, resolved.body)
	}
}

// One request has each alert once, as it is in the end.
func TestAlertsOfOneDelivery(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n := &api.Notification{Spec: api.NotificationSpec{Alertmanager: &api.AlertmanagerDestination{ExpireAfter: "1h"}}}
	berlin := api.HistoryObject{Key: api.Key{Kind: api.KindCluster, Name: "berlin"}}
	offline := event{kind: api.EventClusterOffline, object: berlin, cluster: "berlin", reason: "offline", time: at}
	back := event{kind: api.EventRecovered, recovered: api.EventClusterOffline, object: berlin, cluster: "berlin", time: at.Add(time.Minute)}
	moved := event{kind: api.EventMoved, object: api.HistoryObject{Key: api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}}, time: at}
	alerts := alertsOf(&delivery{notification: n, events: []event{offline, moved, back}})
	if len(alerts) != 2 || alerts[0].Labels["alertname"] != "SchedulerClusterOffline" || !alerts[0].StartsAt.Equal(at) || !alerts[0].EndsAt.Equal(back.time) ||
		alerts[0].Annotations["summary"] != "cluster berlin is offline" || !alerts[1].EndsAt.Equal(at.Add(movedAlert)) {
		t.Errorf("got %+v", alerts)
	}
	again := offline
	again.time = at.Add(2 * time.Minute)
	if alerts := alertsOf(&delivery{notification: n, events: []event{offline, back, again}}); len(alerts) != 1 || !alerts[0].EndsAt.Equal(again.time.Add(time.Hour)) {
		t.Errorf("got %+v", alerts)
	}
}

// The cursor never passes what is not delivered.
func TestCursorOfMergedEvents(t *testing.T) {
	n := &api.Notification{Spec: api.NotificationSpec{Settle: "1s"}}
	at := func(revision int64) history.Cursor { return history.Cursor{Revision: revision, Number: 1} }
	move := func(name string, revision int64) event {
		return event{id: fmt.Sprint(name, revision), kind: api.EventMoved, object: api.HistoryObject{Key: api.Key{Name: name}}, first: at(revision), last: at(revision), changes: 1}
	}
	var done []history.Cursor
	for _, d := range deliveries(n, true, []event{move("a", 1), move("b", 2), move("a", 3), move("c", 4)}) {
		done = append(done, d.done)
	}
	if want := []history.Cursor{{}, at(3), at(4)}; !slices.Equal(done, want) {
		t.Errorf("got %v, want %v", done, want)
	}
	n.Spec.Settle = "0s"
	done = nil
	for _, d := range deliveries(n, true, []event{move("a", 1), move("b", 2), move("b", 2), move("a", 3)}) {
		done = append(done, d.done)
	}
	if want := []history.Cursor{at(1), {}, at(2), at(3)}; !slices.Equal(done, want) {
		t.Errorf("got %v, want %v", done, want)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "0": 0, "120": 2 * time.Minute, "999999": time.Hour, "99999999999": time.Hour, "99999999999999999999999": time.Hour, "-99999999999999999999999": 0,
		"Fri, 31 Dec 9999 23:59:59 GMT": time.Hour, "Thursday, 01-Jan-26 00:00:05 GMT": 5 * time.Second,
		"Thu, 01 Jan 2026 00:00:30 GMT": 30 * time.Second, "Wed, 31 Dec 2025 23:00:00 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A destination that asks to wait is left alone for so long.
func TestRetryAfterIsHonoured(t *testing.T) {
	w := newWorld(t)
	var times []time.Time
	to := newReceiver(t, nil)
	to.answer = func(n int, w http.ResponseWriter, _ *http.Request) {
		to.mu.Lock()
		defer to.mu.Unlock()
		if times = append(times, time.Now()); n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	w.move(w.placement("web"), []string{"berlin"})
	to.await(t, 2)
	to.mu.Lock()
	defer to.mu.Unlock()
	if waited := times[1].Sub(times[0]); waited < time.Second {
		t.Errorf("waited %s, want a second", waited)
	}
}
