package terraform

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// replacedDependents holds what belonged to objects that were deleted in this run. The
// server deletes it with them; where the same run creates one again, because it is
// replaced, nothing plans what belongs to it, and it is put back.
type replacedDependents struct {
	mu      sync.Mutex
	objects map[api.Key][]api.Object
}

// remember keeps what belongs to an object that is about to be deleted. What cannot be
// read is made again by the next plan.
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

// restore puts back what belongs to an object that has been created again. What
// somebody else has written meanwhile stays.
func (r *replacedDependents) restore(ctx context.Context, c *client.Client, of api.Key) {
	r.mu.Lock()
	objects := r.objects[of]
	delete(r.objects, of)
	r.mu.Unlock()
	for _, object := range objects {
		_, _ = c.Put(ctx, object, client.PutOptions{Create: true, Wait: new(time.Duration)}) // else the next plan makes it
	}
}
