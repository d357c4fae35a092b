package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// eventTest is the event of a test. No notification can ask for it.
const eventTest api.NotificationEvent = "test"

// testTimeout limits a test: somebody waits for it.
const testTimeout = usualTimeout

// Test sends an event that says that it is a test, once, and returns what became of it. Nothing of it is kept, and it may be
// sent while the notification is paused, or its destination is gone.
func (r *Runner) Test(ctx context.Context, key api.Key) (api.NotificationTest, error) {
	n, ok := r.object(key).(*api.Notification)
	if !ok {
		return api.NotificationTest{}, ErrNotFound
	}
	to, err := newSender(n, r.options.Network, r.options.RoundTripper, r.options.Now)
	if err != nil {
		return api.NotificationTest{}, fmt.Errorf("send a test: %w", err)
	}
	defer to.client.CloseIdleConnections()
	now := r.options.Now().UTC()
	e := event{
		id: "test-" + hashed(n.Metadata.UID, now.Format(time.RFC3339Nano)), time: now, kind: eventTest,
		object: api.HistoryObject{Key: key, UID: n.Metadata.UID}, message: "sent on request, nothing has happened",
	}
	limited, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	err = destinationOf(n).send(limited, to, &delivery{notification: n, id: e.id, events: []event{e}})
	if err != nil && ctx.Err() != nil {
		return api.NotificationTest{}, ctx.Err()
	}
	test := api.NotificationTest{ID: e.id, Time: now, Result: api.DeliveryDone, Code: int64(to.code)}
	if err != nil {
		test.Result, test.Message = api.DeliveryFailed, describe(err)
		if answer, answered := errors.AsType[*answerError](err); answered && answer.code == http.StatusGone {
			test.Result = api.DeliveryGone
		}
	}
	return test, nil
}
