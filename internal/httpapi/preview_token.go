package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// redeem adds to the next version of a placement the decision that a preview
// promised, so that both are written together. Without a token it does nothing.
// The error is a 412 where the promise cannot be kept.
func (s *Server) redeem(ctx context.Context, token string, next *successor, current *stored) error {
	if token == "" {
		return nil
	}
	placement, ok := next.object.(*api.Placement)
	if !ok {
		return newProblem(http.StatusUnprocessableEntity, "Preview-Token: only placements have previews")
	}
	p, revision, err := s.readPreview(ctx, token)
	if err != nil {
		return err
	}
	if err := p.matches(placement); err != nil {
		return err
	}
	s.catchUp(ctx)
	write := store.Write{Key: api.KeyOf(placement), Part: store.Status, Expect: store.Any}
	if current != nil {
		write.Expect = current.statusRevision
		if was, ok := current.object.(*api.Placement); ok {
			placement.Status = was.Status
		}
	} else if p.OwnUID {
		// The UID is given away once: a placement that is created again must not
		// pass for the one before.
		placement.Metadata.UID = p.Placement.Metadata.UID
		used := *p
		used.OwnUID = false
		value, err := encodePreview(&used)
		if err != nil {
			return err
		}
		next.also = append(next.also, store.Write{Key: previewKey(p.ID), Part: store.Spec, Value: value, Expect: revision})
	}
	status, _, err := s.decisions.Preview(placement)
	if err != nil {
		return err
	}
	promised := &p.Placement.Status
	if !sameDecision(promised, &status) {
		return newProblem(http.StatusPreconditionFailed, "the fleet changed since the preview: plan again: it showed %s, and the decision would now be %s",
			listed(promised.Clusters), listed(status.Clusters))
	}
	placement.Status = inOrder(status, promised.Clusters)
	if write.Value, err = s.codec.EncodeStatus(placement); err != nil {
		return fmt.Errorf("encode the previewed decision: %w", err)
	}
	next.also = append(next.also, write)
	return nil
}

// matches says why the preview is not one of this placement. No decision follows
// from the placement's own labels, so they may differ.
func (p *preview) matches(placement *api.Placement) error {
	key := api.KeyOf(placement)
	if p == nil {
		return newProblem(http.StatusPreconditionFailed, "the preview does not exist or has expired: plan again")
	}
	previewed := *p.Placement
	previewed.Metadata.Labels = placement.Metadata.Labels
	switch {
	case api.KeyOf(&previewed) != key:
		return newProblem(http.StatusPreconditionFailed, "the preview was made for %s, not for %s: plan again", api.KeyOf(&previewed), key)
	case !api.SameIntent(&previewed, placement):
		return newProblem(http.StatusPreconditionFailed, "the preview was made for another spec of %s: plan again", key)
	}
	return nil
}

// sameDecision reports whether two statuses choose the same clusters. The order
// follows from scores, which move all the time; it matters only where it divides
// the clusters into groups.
func sameDecision(a, b *api.PlacementStatus) bool {
	if len(a.DecisionGroups) > 0 || len(b.DecisionGroups) > 0 {
		return slices.Equal(a.Clusters, b.Clusters) && slices.EqualFunc(a.DecisionGroups, b.DecisionGroups, func(x, y api.ChosenGroup) bool {
			return x.Index == y.Index && x.Name == y.Name && slices.Equal(x.Clusters, y.Clusters)
		})
	}
	x, y := slices.Sorted(slices.Values(a.Clusters)), slices.Sorted(slices.Values(b.Clusters))
	return slices.Equal(x, y)
}

// inOrder is a status with its clusters in the order that was shown.
func inOrder(status api.PlacementStatus, clusters []string) api.PlacementStatus {
	if slices.Equal(status.Clusters, clusters) {
		return status
	}
	byName := make(map[string]api.Decision, len(status.Decisions))
	for _, d := range status.Decisions {
		byName[d.Cluster] = d
	}
	status.Clusters = clusters
	status.Decisions = make([]api.Decision, len(clusters))
	for i, name := range clusters {
		d := byName[name]
		d.Cluster, d.Rank = name, int64(i+1)
		status.Decisions[i] = d
	}
	return status
}

// listed renders clusters for a message; of very many it shows the first.
func listed(clusters []string) string {
	const most = 20
	if len(clusters) > most {
		return fmt.Sprintf("[%s and %d more]", strings.Join(clusters[:most], ", "), len(clusters)-most)
	}
	return "[" + strings.Join(clusters, ", ") + "]"
}
