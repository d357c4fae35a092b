package terraform

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// replacedDependents holds the dependents of objects that were deleted in this run. The server
// deletes them together with the object. If the object is created again because it is replaced,
// nothing plans the dependents, so they are restored.
type replacedDependents struct {
	mu      sync.Mutex
	objects map[api.Key][]api.Object
}

// remember keeps the dependents of an object that is about to be deleted. Those that cannot be read
// are created by the next plan.
func (r *replacedDependents) remember(ctx context.Context, c *client.Client, kind api.Kind, of api.Key) {
	var objects []api.Object
	for object, err := range c.List(ctx, kind, client.ListOptions{Namespace: of.Name}) {
		if err != nil {
			return
		}
		objects = append(objects, object)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects == nil {
		r.objects = map[api.Key][]api.Object{}
	}
	r.objects[of] = objects
}

// restore creates the dependents of a recreated object. Objects that somebody else has written in
// the meantime are not overwritten.
func (r *replacedDependents) restore(ctx context.Context, c *client.Client, of api.Key) {
	r.mu.Lock()
	objects := r.objects[of]
	delete(r.objects, of)
	r.mu.Unlock()
	for _, object := range objects {
		_, _ = c.Put(ctx, object, client.PutOptions{Create: true, Wait: new(time.Duration)}) // on failure, the next plan creates it
	}
}
