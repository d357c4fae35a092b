// Package hub reads and writes objects of one Kubernetes cluster, the hub, for the leader: the
// objects of GitOps controllers, decisions, and profiles of clusters. Each user has its own Link; all
// of them share one connection.
package hub

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
)

const (
	// FieldManager is the name under which the hub records what this server writes.
	FieldManager = "scheduler-server"
	// requestsPerSecond limits the requests of one user.
	requestsPerSecond = 200
	// answerWithin is the timeout of a request.
	answerWithin = 10 * time.Second
	// maxAnswer limits the size of a page of objects, in bytes.
	maxAnswer = 64 << 20
)

// again is the backoff after a failure.
var again = backoff.Backoff{First: 500 * time.Millisecond, Most: 30 * time.Second}

// Access is how to reach the hub.
type Access struct {
	// Clusters makes the connection.
	Clusters *kube.Clusters
	// Kubeconfig returns the access. If nil, this server is a pod in the hub.
	Kubeconfig func() (api.Secret, error)
}

// Open connects to the hub, without making a request.
func (a Access) Open() (_ dynamic.Interface, disconnect func(), err error) {
	var config *rest.Config
	var connection *kube.Connection
	if a.Kubeconfig == nil {
		config, connection, err = a.Clusters.OpenInPod(maxAnswer)
	} else {
		var kubeconfig api.Secret
		if kubeconfig, err = a.Kubeconfig(); err == nil {
			config, connection, err = a.Clusters.Open("", kubeconfig, maxAnswer)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	config.QPS, config.Burst = requestsPerSecond, requestsPerSecond
	client, err := dynamic.NewForConfigAndClient(config, connection.HTTP)
	if err != nil {
		connection.Close()
		return nil, nil, kube.Incomplete()
	}
	return client, connection.Close, nil
}

// Options of a Link. All but Faults are required.
type Options struct {
	// Open connects to the hub.
	Open func() (_ dynamic.Interface, disconnect func(), err error)
	// Note is called with why the hub is not watched when that changes; "" = it is again.
	Note func(failure string)
	// Faults records panics. If nil, they are not recorded.
	Faults *fault.Component
}

// Link watches objects of the hub for one user.
type Link struct {
	options Options
	watches []watched
	client  dynamic.Interface // set before anything is watched

	mu      sync.Mutex
	gate    *feed.Gate // guarded by mu: nil until the hub is reached
	failure error      // guarded by mu: of connecting
	noted   string     // guarded by mu: the failure that was noted last
}

// watched is one resource that is watched.
type watched struct {
	resource schema.GroupVersionResource
	optional bool
	run      func(ctx context.Context, f *feed.Feed)
	failure  func(*feed.Gate) error
}

// NewLink returns a Link that watches nothing yet.
func NewLink(o Options) *Link { return &Link{options: o} }

// Resource is what a link watches.
type Resource struct {
	schema.GroupVersionResource
	// Labels restricts the objects. "" = all of them.
	Labels string
	// Optional resources need not be defined in the hub.
	Optional bool
}

// Watch makes a link keep a table current while it runs. changed is called when the table has
// changed.
func Watch[V any](l *Link, table *feed.Table[V], r Resource, changed func()) {
	l.watches = append(l.watches, watched{r.GroupVersionResource, r.Optional, func(ctx context.Context, f *feed.Feed) {
		feed.Reflect(f, table, selected{l.client.Resource(r.GroupVersionResource), r.Labels}, func() {
			l.note()
			changed()
		}).Run(ctx)
	}, table.Failure})
}

// selected is a source of the objects with some labels.
type selected struct {
	from   dynamic.ResourceInterface
	labels string
}

// List implements feed.Source.
func (s selected) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	options.LabelSelector = s.labels
	return s.from.List(ctx, options)
}

// Watch implements feed.Source.
func (s selected) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = s.labels
	return s.from.Watch(ctx, options)
}

// Client returns the client of the hub. It must not be called before the link runs.
func (l *Link) Client() dynamic.Interface { return l.client }

// Run connects to the hub, and watches and runs the parts until ctx is done.
func (l *Link) Run(ctx context.Context, parts ...func(context.Context) error) error {
	disconnect, ok := l.reach(ctx)
	if !ok {
		return nil
	}
	defer disconnect()
	f := feed.New("", nil, l.options.Faults)
	f.Gate.Set(nil) // nobody probes the hub
	l.mu.Lock()
	l.gate = f.Gate
	l.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range l.watches {
		group.Go(func() error {
			l.options.Faults.Go(w.resource.Resource, func() { w.run(ctx, f) })
			return nil
		})
	}
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}

// reach opens the access to the hub, and tries again until ctx is done: a kubeconfig may be mounted
// late.
func (l *Link) reach(ctx context.Context) (disconnect func(), ok bool) {
	for failures := 1; ; failures++ {
		client, disconnect, err := l.options.Open()
		l.mu.Lock()
		l.failure = err
		l.mu.Unlock()
		l.note()
		if err == nil {
			l.client = client
			return disconnect, true
		}
		if !backoff.Wait(ctx, again.After(failures)) {
			return nil, false
		}
	}
}

// note says why the hub is not watched when that changes.
func (l *Link) note() {
	err, text := l.Failure(), ""
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if text != l.noted {
		l.options.Note(text)
	}
	l.noted = text
}

// Failure returns why the hub is not watched, or nil.
func (l *Link) Failure() error {
	l.mu.Lock()
	failure, gate := l.failure, l.gate
	l.mu.Unlock()
	if failure != nil || gate == nil {
		return failure
	}
	for _, w := range l.watches {
		err := w.failure(gate)
		switch {
		case err == nil, w.optional && apierrors.IsNotFound(err):
		case apierrors.IsNotFound(err):
			return errors.New(w.resource.GroupResource().String() + " " + w.resource.Version + ": the API server does not know this resource: install its definition")
		default:
			_, message := kube.Describe(w.resource.Resource, err)
			return errors.New(message)
		}
	}
	return nil
}

// Within returns a context for one request.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerWithin)
}
