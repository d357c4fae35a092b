package terraform

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

const (
	// readsBeforeList is how many objects of a kind are read one by one before a
	// list is fetched: a small configuration beside a large fleet stays cheap.
	readsBeforeList = 20
	// snapshotAge is how long a list answers reads.
	snapshotAge = 5 * time.Second
	// maxListed bounds a list. What lies beyond it is read one by one.
	maxListed = 20_000
)

// listSnapshots answers the reads of a refresh from one list per kind instead of
// a request per object. An object that a list does not have is always asked for
// by itself, so a list never makes an object disappear.
type listSnapshots struct {
	client *client.Client
	now    func() time.Time

	mu    sync.Mutex
	kinds map[api.Kind]*listSnapshot
}

type listSnapshot struct {
	reads int
	// done is closed when the list is there; nil while none was fetched.
	done    chan struct{}
	fetched time.Time
	objects map[api.Key]api.Object
}

func newListSnapshots(c *client.Client) *listSnapshots {
	return &listSnapshots{client: c, now: time.Now, kinds: map[api.Kind]*listSnapshot{}}
}

// forget drops what was listed, also what is being listed.
func (l *listSnapshots) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.kinds)
}

// get reads an object, from a list where one is due.
func (l *listSnapshots) get(ctx context.Context, key api.Key) (api.Object, error) {
	if object := l.listed(ctx, key); object != nil {
		return object, nil
	}
	return l.client.Get(ctx, key)
}

// listed returns the object as a list has it, nil when it has to be read by
// itself.
func (l *listSnapshots) listed(ctx context.Context, key api.Key) api.Object {
	l.mu.Lock()
	snapshot := l.kinds[key.Kind]
	if snapshot == nil {
		snapshot = &listSnapshot{}
		l.kinds[key.Kind] = snapshot
	}
	snapshot.reads++
	if snapshot.reads <= readsBeforeList {
		l.mu.Unlock()
		return nil
	}
	if snapshot.done != nil && isClosed(snapshot.done) && l.now().Sub(snapshot.fetched) > snapshotAge {
		snapshot = &listSnapshot{reads: snapshot.reads}
		l.kinds[key.Kind] = snapshot
	}
	if snapshot.done == nil {
		snapshot.done = make(chan struct{})
		l.mu.Unlock()
		l.fetch(ctx, key.Kind, snapshot)
	} else {
		l.mu.Unlock()
		select {
		case <-snapshot.done:
		case <-ctx.Done():
			return nil
		}
	}
	return snapshot.objects[key]
}

// fetch fills a snapshot that others wait for. An error leaves it with what was
// read so far: the single reads that follow report what is wrong.
func (l *listSnapshots) fetch(ctx context.Context, kind api.Kind, snapshot *listSnapshot) {
	objects := map[api.Key]api.Object{}
	for object, err := range l.client.List(ctx, kind, client.ListOptions{}) {
		if err != nil || len(objects) == maxListed {
			break
		}
		objects[api.KeyOf(object)] = object
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	snapshot.objects, snapshot.fetched = objects, l.now()
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
