package terraform

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

const (
	// readsBeforeList is how many objects of a kind are read individually before they are listed: a
	// small configuration stays cheap even with a large fleet.
	readsBeforeList = 20
	// namespacesBeforeAll is in how many namespaces objects of a kind are listed separately. A run
	// that reads more namespaces lists all at once.
	namespacesBeforeAll = 10
	// snapshotAge is the minimum time for which a list is used. A list fetched later in a run is
	// used for as long as the run had taken until then, so that a long run does not list a large
	// fleet over and over.
	snapshotAge = 5 * time.Second
	// maxListed limits the size of a list. Further objects are read individually.
	maxListed = 20_000
)

// listSnapshots serves the reads of a refresh from a few lists instead of a request per object. An
// object that is missing from a list is always read individually, so a list never makes an object
// disappear.
type listSnapshots struct {
	client *client.Client
	now    func() time.Time

	mu    sync.Mutex
	began time.Time // when the first object was read
	kinds map[api.Kind]*kindReads
}

// kindReads tracks the reads of one kind.
type kindReads struct {
	reads       int
	byNamespace map[string]int
	lists       map[string]*listSnapshot // by namespace, "" = all
}

type listSnapshot struct {
	// done is closed when the list is available.
	done    chan struct{}
	fetched time.Time
	lasts   time.Duration
	objects map[api.Key]api.Object
}

func newListSnapshots(c *client.Client) *listSnapshots {
	return &listSnapshots{client: c, now: time.Now, kinds: map[api.Kind]*kindReads{}}
}

// forget drops all lists, including those being fetched.
func (l *listSnapshots) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.kinds)
}

// get reads an object, from a list if one is warranted.
func (l *listSnapshots) get(ctx context.Context, key api.Key) (api.Object, error) {
	if object := l.listed(ctx, key); object != nil {
		return object, nil
	}
	return l.client.Get(ctx, key)
}

// listed returns the object from a list, or nil if it must be read individually.
func (l *listSnapshots) listed(ctx context.Context, key api.Key) api.Object {
	l.mu.Lock()
	if l.began.IsZero() {
		l.began = l.now()
	}
	kind := l.kinds[key.Kind]
	if kind == nil {
		kind = &kindReads{byNamespace: map[string]int{}, lists: map[string]*listSnapshot{}}
		l.kinds[key.Kind] = kind
	}
	kind.reads++
	kind.byNamespace[key.Namespace]++
	scope, reads := kind.scope(key.Namespace)
	if reads <= readsBeforeList {
		l.mu.Unlock()
		return nil
	}
	snapshot := kind.lists[scope]
	if snapshot != nil && isClosed(snapshot.done) && l.outdated(snapshot) {
		snapshot = nil
	}
	if snapshot == nil {
		snapshot = &listSnapshot{done: make(chan struct{})}
		kind.lists[scope] = snapshot
		l.mu.Unlock()
		l.fetch(ctx, key.Kind, scope, snapshot)
		return snapshot.objects[key]
	}
	l.mu.Unlock()
	select {
	case <-snapshot.done:
		return snapshot.objects[key]
	case <-ctx.Done():
		return nil
	}
}

// scope returns the namespace to list for an object, "" meaning all, and how many objects in that
// scope have been read.
func (k *kindReads) scope(namespace string) (scope string, reads int) {
	if len(k.byNamespace) > namespacesBeforeAll {
		return "", k.reads
	}
	return namespace, k.byNamespace[namespace]
}

func (l *listSnapshots) outdated(s *listSnapshot) bool { return l.now().Sub(s.fetched) > s.lasts }

// peek returns the object from an existing list, or nil.
func (l *listSnapshots) peek(key api.Key) api.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := l.kinds[key.Kind]
	if kind == nil {
		return nil
	}
	scope, _ := kind.scope(key.Namespace)
	snapshot := kind.lists[scope]
	if snapshot == nil || !isClosed(snapshot.done) || l.outdated(snapshot) {
		return nil
	}
	return snapshot.objects[key]
}

// fetch fills a snapshot that others wait for. If it fails, the snapshot keeps what was read so
// far: the individual reads that follow report the error.
func (l *listSnapshots) fetch(ctx context.Context, kind api.Kind, namespace string, snapshot *listSnapshot) {
	objects := map[api.Key]api.Object{}
	for object, err := range l.client.List(ctx, kind, client.ListOptions{Namespace: namespace}) {
		if err != nil || len(objects) == maxListed {
			break
		}
		objects[api.KeyOf(object)] = object
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	snapshot.objects, snapshot.fetched = objects, l.now()
	snapshot.lasts = max(snapshotAge, snapshot.fetched.Sub(l.began))
	close(snapshot.done)
}

func isClosed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
