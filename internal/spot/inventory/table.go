package inventory

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// source lists and watches the objects of one sort, as the typed clients do.
type source[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// table is what a reflector of client-go fills: not with the objects, of which a
// cluster has many and large ones, but with what put keeps of them.
type table struct {
	what      string // in the words of an error
	reflector *cache.Reflector
	lock      *sync.Mutex // of the inventory
	trim      func(any)
	put       func(any) (types.UID, bool)
	remove    func(types.UID)

	known  map[types.UID]struct{} // guarded by lock
	listed chan struct{}          // closed after the first list
	once   sync.Once

	mu  sync.Mutex
	err error
}

// newTable makes a table of a sort of objects, of which empty is one. put and remove
// are called under the lock of the inventory.
func newTable[O, L runtime.Object](i *Inventory, what string, s source[L], empty O, trim func(O), put func(O) types.UID, remove func(types.UID)) *table {
	t := &table{
		what: what, lock: &i.mu, remove: remove, known: map[types.UID]struct{}{}, listed: make(chan struct{}),
		trim: func(object any) {
			if o, ok := object.(O); ok {
				trim(o)
			}
		},
		put: func(object any) (types.UID, bool) {
			o, ok := object.(O)
			if !ok {
				return "", false
			}
			return put(o), true
		},
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := s.List(ctx, options)
			t.note(err)
			if err != nil {
				return nil, err // not a nil list in an interface
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := s.Watch(ctx, options)
			t.note(err)
			return w, err
		},
	}
	quiet := logr.Discard() // what matters of it stands in the status of the cluster
	t.reflector = cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, i.Client), empty, t, cache.ReflectorOptions{
		Logger: &quiet, Name: what,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Factor: 2, Jitter: 0.5, Steps: 1 << 30},
	})
	return t
}

func (t *table) run(ctx context.Context) {
	t.reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

func (t *table) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

func (t *table) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Transformer implements cache.TransformingStore: the list that is being read is kept
// as a whole until it is complete.
func (t *table) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		t.trim(object)
		return object, nil
	}
}

// Add implements cache.ReflectorStore.
func (t *table) Add(object any) error { return t.Update(object) }

// Update implements cache.ReflectorStore.
func (t *table) Update(object any) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if uid, ok := t.put(object); ok {
		t.known[uid] = struct{}{}
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (t *table) Delete(object any) error {
	if d, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = d.Obj
	}
	o, ok := object.(metav1.Object)
	if !ok {
		return nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.forget(o.GetUID())
	return nil
}

func (t *table) forget(uid types.UID) {
	delete(t.known, uid)
	t.remove(uid)
}

// Replace implements cache.ReflectorStore.
func (t *table) Replace(objects []any, _ string) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	gone := t.known
	t.known = make(map[types.UID]struct{}, len(objects))
	for _, object := range objects {
		if uid, ok := t.put(object); ok {
			t.known[uid] = struct{}{}
			delete(gone, uid)
		}
	}
	for uid := range gone {
		t.remove(uid)
	}
	t.once.Do(func() { close(t.listed) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (t *table) Resync() error { return nil }
