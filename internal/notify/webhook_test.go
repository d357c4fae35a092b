package notify

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

const (
	secret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	previous = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// The signatures are those of Standard Webhooks, with the old secret too while it is rotated, and the events are
// those of CloudEvents.
func TestWebhook(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q,"secret":%q,"previous_secret":%q}`, to.URL+"/hook", secret, previous))
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	w.move(web, []string{"berlin"})
	w.move(web, []string{"paris"})
	requests := to.await(t, 2)
	for _, key := range []string{secret, previous} {
		verifier, err := standardwebhooks.NewWebhook(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requests {
			if err := verifier.Verify(r.body, r.Header); err != nil {
				t.Errorf("not verified with %s: %v", key, err)
			}
			if err := verifier.Verify(append(r.body, ' '), r.Header); err == nil {
				t.Error("another body is verified as well")
			}
		}
	}
	r := requests[1]
	event := ce.NewEvent()
	r.decode(t, &event)
	if err := event.Validate(); err != nil {
		t.Error(err)
	}
	if event.ID() != r.Header.Get("Webhook-Id") || event.Type() != "dev.scheduler.placement.moved.v1" || event.Source() != "/v1/notifications/ops" || event.Subject() != "shop/web" {
		t.Errorf("got %s", r.body)
	}
	var d data
	if err := event.DataAs(&d); err != nil {
		t.Fatal(err)
	}
	if d.Summary != "placement shop/web moved: berlin -> paris" || !slices.Equal(d.Before.Clusters, []string{"berlin"}) || !slices.Equal(d.After.Clusters, []string{"paris"}) ||
		d.Cause == nil || d.Cause.Type != api.CauseMetric || d.Object.UID != "uid-web" {
		t.Errorf("got %s", r.body)
	}
	if r.URL.Path != "/hook" || r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents+json") {
		t.Errorf("got %s %s with %v", r.Method, r.URL, r.Header)
	}
	if requests[0].Header.Get("Webhook-Id") == requests[1].Header.Get("Webhook-Id") {
		t.Error("two events have one ID")
	}
}

// The signatures are those that the JavaScript library of Standard Webhooks makes: testdata/standardwebhooks.mjs says how.
func TestSignaturesOfJavaScript(t *testing.T) {
	text, err := os.ReadFile("testdata/standardwebhooks.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Secret, ID, Body, Signature string
		Seconds                     int64
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for _, v := range vectors {
		header := http.Header{}
		sign(header, v.ID, time.Unix(v.Seconds, 0), []byte(v.Body), api.NewSecret(v.Secret))
		if got := header.Get("Webhook-Signature"); got != v.Signature {
			t.Errorf("%s at %d with %s: got %s, want %s", v.ID, v.Seconds, v.Secret, got, v.Signature)
		}
		sign(header, v.ID, time.Unix(v.Seconds, 0), []byte(v.Body), api.NewSecret(secret), api.NewSecret(v.Secret))
		if _, second, _ := strings.Cut(header.Get("Webhook-Signature"), " "); second != v.Signature {
			t.Errorf("%s: got %s as the second of two", v.ID, second)
		}
	}
}

// What fails is sent again until it succeeds, with the same ID, and nothing else is sent before.
func TestFailuresAreRetriedInOrder(t *testing.T) {
	w := newWorld(t)
	to := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n%3 != 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	for _, cluster := range []string{"a", "b", "c"} {
		w.move(web, []string{cluster})
	}
	requests := to.await(t, 9)
	want := []string{"placement shop/web was decided: a", "placement shop/web moved: a -> b", "placement shop/web moved: b -> c"}
	for i, r := range requests[:9] {
		if got := summaries(t, []request{r}); got[0] != want[i/3] || r.Header.Get("Webhook-Id") != requests[i/3*3].Header.Get("Webhook-Id") {
			t.Errorf("request %d says %q", i, got)
		}
	}
	w.is("ops", api.ReasonDelivering)
	eventually.True(t, "three deliveries are listed", func() bool { return len(w.status("ops").Attempts) == 3 })
	for _, a := range w.status("ops").Attempts {
		if a.Attempts != 3 || a.Result != api.DeliveryDone || a.Events != 1 {
			t.Errorf("got %+v", a)
		}
	}
}

// After a change of leader, delivery goes on where it was: nothing is missing, and what is repeated has the ID that it had.
func TestAnotherRunnerGoesOn(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	var want []string
	for i := range 20 {
		w.move(web, []string{fmt.Sprintf("c%d", i)})
		if want = append(want, fmt.Sprintf("placement shop/web moved: c%d -> c%d", i-1, i)); i == 0 {
			want[0] = "placement shop/web was decided: c0"
		}
		if i%5 == 4 {
			w.run()
		}
	}
	eventually.True(t, "all are told", func() bool { return len(summaries(t, to.got())) == len(want) })
	if got := summaries(t, to.got()); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A destination that is gone gets nothing more until the notification is written again, and then all that happened.
func TestGone(t *testing.T) {
	w := newWorld(t)
	to := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusGone)
		}
	})
	n := w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	w.move(web, []string{"a"})
	w.is("ops", api.ReasonDestinationGone)
	w.move(web, []string{"b"})
	w.run() // another leader leaves it alone, too
	again := *n
	again.Spec.Settle = "0s"
	w.put(&again)
	w.is("ops", api.ReasonDelivering)
	if got := summaries(t, to.await(t, 3)); !slices.Equal(got, []string{"placement shop/web was decided: a", "placement shop/web moved: a -> b"}) {
		t.Errorf("got %q", got)
	}
	if len(to.got()) != 3 {
		t.Errorf("got %d requests, want 3", len(to.got()))
	}
}

// One destination that does not answer delays no other one.
func TestDeadDestination(t *testing.T) {
	w, alive := newWorld(t), newReceiver(t, nil)
	release := make(chan struct{})
	dead := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	w.notification("dead", fmt.Sprintf(`"webhook":{"url":%q}`, dead.URL))
	w.notification("alive", fmt.Sprintf(`"webhook":{"url":%q}`, alive.URL))
	w.run()
	w.is("dead", api.ReasonDelivering)
	w.is("alive", api.ReasonDelivering)
	web := w.placement("web")
	for i := range 50 {
		w.move(web, []string{fmt.Sprintf("c%d", i)})
	}
	alive.await(t, 50)
	if got := len(dead.await(t, 1)); got != 1 {
		t.Errorf("%d requests at once", got)
	}
	w.stop()
}

// What was given up stays in the list, what comes after is sent, and it can be sent again with its ID.
func TestGivenUpAndSentAgain(t *testing.T) {
	w := newWorld(t)
	broken := true
	to := newReceiver(t, nil)
	to.answer = func(_ int, w http.ResponseWriter, _ *http.Request) {
		to.mu.Lock()
		defer to.mu.Unlock()
		if broken {
			w.WriteHeader(http.StatusTeapot)
		}
	}
	w.notification("ops", fmt.Sprintf(`"retry_for":"1s","webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	w.move(web, []string{"a"})
	eventually.True(t, "it is given up", func() bool {
		list := w.status("ops").Attempts
		return len(list) == 1 && list[0].Result == api.DeliveryGivenUp
	})
	first := w.status("ops").Attempts[0]
	if first.Code != http.StatusTeapot || !strings.Contains(first.Message, "418") {
		t.Errorf("got %+v", first)
	}
	to.mu.Lock()
	broken = false
	to.mu.Unlock()
	w.move(web, []string{"b"})
	eventually.True(t, "what comes after is sent", func() bool {
		list := w.status("ops").Attempts
		return len(list) == 2 && list[0].Result == api.DeliveryDone
	})
	before := len(to.got())
	key := api.Key{Kind: api.KindNotification, Name: "ops"}
	again, err := w.runner.Redeliver(t.Context(), key, first.ID)
	if err != nil || again.ID != first.ID || again.Result != api.DeliveryDone || again.Attempts != first.Attempts+1 {
		t.Fatalf("got %+v, %v", again, err)
	}
	sent := to.got()[before:]
	if got := summaries(t, sent); len(sent) != 1 || got[0] != "placement shop/web was decided: a" || sent[0].Header.Get("Webhook-Id") != first.ID {
		t.Errorf("sent %q", got)
	}
	eventually.True(t, "the list says so", func() bool {
		return w.status("ops").Attempts[0].Result == api.DeliveryDone && w.status("ops").Attempts[0].ID == first.ID
	})
	if _, err := w.runner.Redeliver(t.Context(), key, "unknown"); err != ErrNoAttempt { //nolint:errorlint // it is this one
		t.Errorf("got %v for an unknown one", err)
	}
}

// What is late already, because the notification was paused, is tried more than once before it is given up.
func TestLateIsRetried(t *testing.T) {
	w := newWorld(t)
	to := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	n := w.notification("ops", fmt.Sprintf(`"retry_for":"1s","paused":true,"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonPaused)
	w.move(w.placement("web"), []string{"a"})
	moved := time.Now()
	eventually.True(t, "it is late", func() bool { return time.Since(moved) > time.Second })
	resumed := *n
	resumed.Spec.Paused = false
	w.put(&resumed)
	to.await(t, 4)
	eventually.True(t, "it is delivered", func() bool {
		list := w.status("ops").Attempts
		return len(list) == 1 && list[0].Result == api.DeliveryDone
	})
}

// A destination has accepted what it answers with 2xx, whatever follows the status.
func TestOnlyTheStatusCounts(t *testing.T) {
	for name, body := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a body without end": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
		"a body that does not come": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_ = http.NewResponseController(w).Flush() // it fails only if the connection has ended
			<-r.Context().Done()
		},
		"a body that breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("less"))
			_ = http.NewResponseController(w).Flush() // it fails only if the connection has ended
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			to := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) { body(w, r) })
			w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
			w.run()
			w.is("ops", api.ReasonDelivering)
			web := w.placement("web")
			w.move(web, []string{"a"})
			w.move(web, []string{"b"})
			if got := summaries(t, to.await(t, 2)); len(got) != 2 {
				t.Errorf("told %q", got)
			}
			eventually.True(t, "both are delivered", func() bool { return len(w.status("ops").Attempts) == 2 })
			for _, a := range w.status("ops").Attempts {
				if a.Result != api.DeliveryDone || a.Attempts != 1 {
					t.Errorf("got %+v", a)
				}
			}
		})
	}
}

// An answer with very large headers is a failure like others: it does not take memory, and other notifications go on.
func TestHugeHeaders(t *testing.T) {
	w, alive := newWorld(t), newReceiver(t, nil)
	to := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 4<<20))
	})
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
	w.notification("alive", fmt.Sprintf(`"webhook":{"url":%q}`, alive.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	w.is("alive", api.ReasonDelivering)
	w.move(w.placement("web"), []string{"a"})
	w.is("ops", api.ReasonDeliveryFails)
	alive.await(t, 1)
}

// A notification that is deleted while it delivers is forgotten, and one of the same name tells only of what happens from then on.
func TestDeletedWhileItDelivers(t *testing.T) {
	w, alive := newWorld(t), newReceiver(t, nil)
	release := make(chan struct{})
	slow := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	n := w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, slow.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	web := w.placement("web")
	w.move(web, []string{"a"})
	slow.await(t, 1)
	key := api.KeyOf(n)
	revision, err := w.store.Commit(w.ctx, store.Write{Key: key, Part: store.Spec, Expect: store.Any}, store.Write{Key: key, Part: store.Status, Expect: store.Any})
	if err != nil {
		t.Fatal(err)
	}
	w.shows(revision)
	eventually.True(t, "it is forgotten", func() bool { return len(w.runner.all()) == 0 })
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, alive.URL))
	w.is("ops", api.ReasonDelivering)
	w.move(web, []string{"b"})
	if got := summaries(t, alive.await(t, 1)); got[0] != "placement shop/web moved: a -> b" {
		t.Errorf("told %q", got)
	}
}

// While a secret is replaced during a delivery, the delivery is sent again with the new one, and the same ID.
func TestSecretReplacedWhileItDelivers(t *testing.T) {
	w := newWorld(t)
	to := newReceiver(t, func(n int, _ http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-r.Context().Done()
		}
	})
	n := w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q,"secret":%q}`, to.URL, previous))
	w.run()
	w.is("ops", api.ReasonDelivering)
	w.move(w.placement("web"), []string{"a"})
	to.await(t, 1)
	replaced := *n
	replaced.SetSecret("spec.webhook.secret", api.NewSecret(secret))
	w.put(&replaced)
	requests := to.await(t, 2)
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(requests[1].body, requests[1].Header); err != nil {
		t.Error(err)
	}
	if requests[0].Header.Get("Webhook-Id") != requests[1].Header.Get("Webhook-Id") {
		t.Error("the ID has changed")
	}
}

// While it is paused, nothing is sent; afterwards, all of it.
func TestPaused(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	n := w.notification("ops", fmt.Sprintf(`"paused":true,"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonPaused)
	web := w.placement("web")
	w.move(web, []string{"a"})
	w.move(web, []string{"b"})
	resumed := *n
	resumed.Spec.Paused = false
	w.put(&resumed)
	if got := summaries(t, to.await(t, 2)); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

// Changes of one decision in a short time are one event; those of others are not delayed for ever.
func TestSettle(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	n := w.notification("ops", fmt.Sprintf(`"settle":"1s","paused":true,"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonPaused)
	web, api1 := w.placement("web"), w.placement("api")
	for i := range 10 {
		w.move(web, []string{fmt.Sprintf("c%d", i)})
	}
	w.move(api1, []string{"x"})
	resumed := *n
	resumed.Spec.Paused = false
	w.put(&resumed)
	requests := to.await(t, 2)
	if got := summaries(t, requests); !slices.Equal(got, []string{"placement shop/web was decided: c9", "placement shop/api was decided: x"}) {
		t.Errorf("got %q", got)
	}
	var e cloudEvent
	requests[0].decode(t, &e)
	if e.Data.Changes != 10 {
		t.Errorf("got %d changes", e.Data.Changes)
	}
}

// Redirects are not followed, and the secret address of a channel is in no message.
func TestRedirectIsAFailure(t *testing.T) {
	w, elsewhere := newWorld(t), newReceiver(t, nil)
	to := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	w.notification("ops", fmt.Sprintf(`"slack":{"url":%q}`, to.URL+"/hush-4711"))
	w.run()
	w.is("ops", api.ReasonDelivering)
	w.move(w.placement("web"), []string{"a"})
	w.is("ops", api.ReasonDeliveryFails)
	if status := fmt.Sprintf("%+v", w.status("ops")); strings.Contains(status, "hush-4711") || !strings.Contains(status, "redirects are not followed") {
		t.Errorf("got %s", status)
	}
	w.stop()
	if logs := w.logs.String(); strings.Contains(logs, "hush-4711") {
		t.Errorf("logged %s", logs)
	}
	if len(elsewhere.got()) > 0 {
		t.Error("the redirect was followed")
	}
}

// An address that the policy does not allow is not connected to.
func TestPolicyHolds(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	var err error
	if w.network, err = netpolicy.New(netpolicy.Options{}); err != nil {
		t.Fatal(err)
	}
	w.notification("ops", fmt.Sprintf(`"webhook":{"url":%q}`, to.URL))
	w.run()
	w.is("ops", api.ReasonDelivering)
	w.move(w.placement("web"), []string{"a"})
	w.is("ops", api.ReasonDeliveryFails)
	if c := w.status("ops").Conditions[0]; !strings.Contains(c.Message, "must not connect to") {
		t.Errorf("got %q", c.Message)
	}
	if len(to.got()) > 0 {
		t.Error("it was connected to")
	}
}
