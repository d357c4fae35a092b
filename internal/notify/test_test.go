package notify

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A test says that it is one, is signed like any other event, and changes nothing, also while the notification is paused.
func TestTestEvent(t *testing.T) {
	w, to := newWorld(t), newReceiver(t, nil)
	w.notification("ops", fmt.Sprintf(`"paused":true,"webhook":{"url":%q,"secret":%q}`, to.URL, secret))
	w.run()
	w.is("ops", api.ReasonPaused)
	key := api.Key{Kind: api.KindNotification, Name: "ops"}
	test, err := w.runner.Test(t.Context(), key)
	if err != nil || test.Result != api.DeliveryDone || test.Code != http.StatusNoContent || test.Message != "" {
		t.Fatalf("got %+v, %v", test, err)
	}
	r := to.await(t, 1)[0]
	var e cloudEvent
	r.decode(t, &e)
	if e.Type != "dev.scheduler.notification.test.v1" || e.Subject != "ops" || e.ID != test.ID || e.Data.Summary != "test of notification ops: sent on request, nothing has happened" {
		t.Errorf("got %s", r.body)
	}
	if verifier, err := standardwebhooks.NewWebhook(secret); err != nil || verifier.Verify(r.body, r.Header) != nil {
		t.Error("the signature is wrong")
	}
	if list := w.status("ops").Attempts; len(list) > 0 {
		t.Errorf("listed %v", list)
	}
	if _, err := w.runner.Test(t.Context(), api.Key{Kind: api.KindNotification, Name: "unknown"}); err != ErrNotFound { //nolint:errorlint // it is this one
		t.Errorf("got %v for an unknown one", err)
	}
}

// The answer says what the destination answered, and repeats nothing that it sent, nor a secret.
func TestTestEventFails(t *testing.T) {
	for _, c := range []struct {
		code   int
		result api.NotificationResult
		want   string
	}{
		{http.StatusUnauthorized, api.DeliveryFailed, "check the secret"}, {http.StatusGone, api.DeliveryGone, "410"}, {http.StatusFound, api.DeliveryFailed, "redirects are not followed"},
	} {
		w := newWorld(t)
		to := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/hush-4711")
			w.WriteHeader(c.code)
			_, _ = fmt.Fprint(w, "hush-4711", r.URL)
		})
		w.notification("ops", fmt.Sprintf(`"slack":{"url":%q}`, to.URL+"/hush-4711"))
		w.run()
		test, err := w.runner.Test(t.Context(), api.Key{Kind: api.KindNotification, Name: "ops"})
		if err != nil || test.Result != c.result || test.Code != int64(c.code) || !strings.Contains(test.Message, c.want) || strings.Contains(test.Message, "hush") {
			t.Errorf("%d: got %+v, %v", c.code, test, err)
		}
		w.stop()
	}
}
