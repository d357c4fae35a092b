package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/notify"
)

// Notifications is the part of *notify.Runner that the API needs. Errors wrap notify.ErrNotFound,
// notify.ErrNoAttempt or notify.ErrNotKept.
type Notifications interface {
	// Redeliver sends what was sent before, with the same ID.
	Redeliver(ctx context.Context, notification api.Key, attempt string) (api.NotificationAttempt, error)
	// Test sends an event that says that it is a test.
	Test(ctx context.Context, notification api.Key) (api.NotificationTest, error)
}

type attemptsInput struct{ Target operation.Target }

type attemptsOutput struct{ Body api.NotificationAttempts }

// Attempt is a delivery of a notification in a path.
type Attempt struct{ id string }

// Resolve implements huma.Resolver.
func (a *Attempt) Resolve(ctx huma.Context) []error {
	a.id = ctx.Param("attempt")
	return nil
}

type redeliverInput struct {
	Target  operation.Target
	Attempt Attempt
}

type testInput struct{ Target operation.Target }

type testOutput struct{ Body api.NotificationTest }

type redeliverOutput struct{ Body api.NotificationAttempt }

// notifications serves requests about what notifications have sent.
type notifications struct {
	api    *operation.API
	rights auth.Rights
	view   *view
	runner Notifications // nil = nothing is sent
}

func (n *notifications) routes() {
	info, _ := api.LookupKind(api.KindNotification)
	for _, within := range []bool{false, true} {
		path := collectionPath(info, within) + "/{name}/attempts"
		list := n.api.OfKind(info, http.MethodGet, path, "list-attempts-of", "List the most recent deliveries of a notification", n.api.Schema(api.NotificationAttempts{}))
		operation.Register(n.api, list, n.list)
		redeliver := n.api.OfKind(info, http.MethodPost, path+"/{attempt}/redeliver", "redeliver", "Send a delivery of a notification again", n.api.Schema(api.NotificationAttempt{}))
		redeliver.Description = "The delivery is read from the history, and sent once, with the same ID. The response says what became of it."
		redeliver.Parameters = append(redeliver.Parameters, &huma.Param{
			Name: "attempt", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "ID of the delivery.",
		})
		operation.Register(n.api, operation.AtLeader(redeliver), n.redeliver)
		test := n.api.OfKind(info, http.MethodPost, collectionPath(info, within)+"/{name}/test", "test", "Send a test event to the destination of a notification", n.api.Schema(api.NotificationTest{}))
		test.Description = "An event of the kind 'test' is sent once, also while the notification is paused. The destination does with it what it does with any other: a test starts a run or a pipeline. The response says what the destination answered, and has status 200 even if that is a refusal."
		operation.Register(n.api, operation.AtLeader(test), n.test)
	}
}

func (n *notifications) list(ctx context.Context, in *attemptsInput) (*attemptsOutput, error) {
	key, who := in.Target.Key(api.KindNotification), auth.Of(ctx)
	if err := n.rights.MayReadKey(who, key); err != nil {
		return nil, err
	}
	entry := n.view.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, n.view.notFound(key)
	}
	if err := n.rights.MayRead(who, entry.Object); err != nil {
		return nil, err
	}
	out := &attemptsOutput{api.NotificationAttempts{Items: []api.NotificationAttempt{}}}
	if notification, ok := entry.Object.(*api.Notification); ok {
		out.Body.Items = notification.Status.Listed()
	}
	return out, nil
}

// mayWrite returns the key of a notification that the caller may write, and which exists.
func (n *notifications) mayWrite(ctx context.Context, target operation.Target) (api.Key, error) {
	key, who := target.Key(api.KindNotification), auth.Of(ctx)
	if err := who.MayWriteKey(key); err != nil {
		return key, err
	}
	entry := n.view.fleet.Snapshot().Get(key)
	if entry == nil {
		return key, n.view.notFound(key)
	}
	if err := who.MayWrite(entry.Object); err != nil {
		return key, err
	}
	if n.runner == nil {
		return key, errNoHistory()
	}
	return key, nil
}

func (n *notifications) test(ctx context.Context, in *testInput) (*testOutput, error) {
	key, err := n.mayWrite(ctx, in.Target)
	if err != nil {
		return nil, err
	}
	test, err := n.runner.Test(ctx, key)
	switch {
	case errors.Is(err, notify.ErrNotFound):
		return nil, n.view.notFound(key)
	case err != nil:
		return nil, err
	}
	return &testOutput{test}, nil
}

func (n *notifications) redeliver(ctx context.Context, in *redeliverInput) (*redeliverOutput, error) {
	key, err := n.mayWrite(ctx, in.Target)
	if err != nil {
		return nil, err
	}
	attempt, err := n.runner.Redeliver(ctx, key, in.Attempt.id)
	switch {
	case errors.Is(err, notify.ErrNotFound):
		return nil, n.view.notFound(key)
	case errors.Is(err, notify.ErrNoAttempt):
		return nil, problem.New(api.ProblemNotFound, "%s has no delivery with this ID among its most recent ones", key)
	case errors.Is(err, notify.ErrNotKept):
		return nil, problem.New(api.ProblemRevisionGone, "%s", notify.ErrNotKept)
	case err != nil:
		return nil, err
	}
	return &redeliverOutput{attempt}, nil
}

// mayTell checks that who writes a notification may read what it tells of: it would be told of it.
func mayTell(who auth.Identity, object api.Object) error {
	n, ok := object.(*api.Notification)
	if !ok {
		return nil
	}
	for _, kind := range n.TellsOf() {
		namespaces := []string{n.Metadata.Namespace}
		if n.Metadata.Namespace == "" && n.Spec.Selector != nil && len(n.Spec.Selector.Namespaces) > 0 {
			namespaces = n.Spec.Selector.Namespaces
		}
		for _, namespace := range namespaces {
			reads := who.ReadsEvery(kind)
			if namespace != "" {
				reads = who.Reads(kind, auth.OwnersIn(namespace)...)
			}
			if !reads {
				return who.Forbidden("be told of objects of kind " + string(kind) + " that it must not read: select kinds and namespaces that it may read")
			}
		}
	}
	return nil
}
