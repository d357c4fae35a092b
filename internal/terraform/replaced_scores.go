package terraform

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// replacedScores holds the scores of clusters that were deleted in this run. The
// server deletes them with their cluster; where the same run creates the cluster
// again, because it is replaced, nothing plans them, and they are put back.
type replacedScores struct {
	mu     sync.Mutex
	scores map[string][]api.Object
}

// remember keeps the scores of a cluster that is about to be deleted. Those that
// cannot be read are made again by the next plan.
func (r *replacedScores) remember(ctx context.Context, c *client.Client, cluster string) {
	var scores []api.Object
	for score, err := range c.List(ctx, api.KindPlacementScore, client.ListOptions{Namespace: cluster}) {
		if err != nil {
			return
		}
		scores = append(scores, score)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scores == nil {
		r.scores = map[string][]api.Object{}
	}
	r.scores[cluster] = scores
}

// restore puts the scores of a cluster back that has been created again. One that
// somebody else has written meanwhile stays.
func (r *replacedScores) restore(ctx context.Context, c *client.Client, cluster string) {
	r.mu.Lock()
	scores := r.scores[cluster]
	delete(r.scores, cluster)
	r.mu.Unlock()
	for _, score := range scores {
		_, _ = c.Put(ctx, score, client.PutOptions{Create: true, Wait: new(time.Duration)}) // else the next plan makes it
	}
}
