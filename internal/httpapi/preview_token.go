package httpapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// redeem adds to the next version of an object the decision that a preview
// promised, so that both are written together. Without a token it does nothing.
// The error is a 412 where the promise cannot be kept.
func (ps *previews) redeem(ctx context.Context, token string, next *successor, current *stored) error {
	if token == "" {
		return nil
	}
	p, revision, err := ps.readPreview(ctx, token)
	if err != nil {
		return err
	}
	if p != nil {
		if err := auth.Of(ctx).MayRead(p.Object); err != nil {
			return err
		}
	}
	if err := p.matches(next.object); err != nil {
		return err
	}
	ps.waits.catchUp(ctx)
	if current != nil {
		carryStatus(next.object, current.object)
	} else if p.OwnUID {
		// The UID is given away once: an object that is created again must not pass
		// for the one before.
		next.object.Meta().UID = p.Object.Meta().UID
		used := *p
		used.OwnUID = false
		value, err := encodePreview(&used)
		if err != nil {
			return err
		}
		next.also = append(next.also, store.Write{Key: previewKey(p.ID), Part: store.Spec, Value: value, Expect: revision})
	}
	var writes []store.Write
	switch object := next.object.(type) {
	case *api.Placement:
		if promised, ok := p.Object.(*api.Placement); ok {
			writes, err = ps.keepPlacement(&promised.Status, object, current)
		}
	case *api.Workload:
		if promised, ok := p.Object.(*api.Workload); ok {
			writes, err = ps.keepWorkload(&promised.Status, object, current)
		}
	case *api.PropagationPolicy:
		writes, err = ps.keepBindings(ctx, p.Bindings, object)
	}
	next.also = append(next.also, writes...)
	return err
}

// matches says why the preview is not one of this object. The decision is made
// again, so what the object's own labels have to do with it shows there.
func (p *preview) matches(object api.Object) error {
	if p == nil {
		return problem.New(api.ProblemPreviewExpired, "the preview does not exist or has expired: plan again")
	}
	previewed, key := p.Object.Copy(), api.KeyOf(object)
	previewed.Meta().Labels = object.Meta().Labels
	switch {
	case api.KeyOf(previewed) != key:
		return problem.New(api.ProblemPreviewMismatch, "the preview was made for %s, not for %s: plan again", api.KeyOf(previewed), key)
	case !api.SameIntent(previewed, object):
		return problem.New(api.ProblemPreviewMismatch, "the preview was made for another spec of %s: plan again", key)
	}
	return nil
}

// keepPlacement gives a placement the previewed decision, and returns its write.
func (ps *previews) keepPlacement(promised *api.PlacementStatus, placement *api.Placement, current *stored) ([]store.Write, error) {
	status, _, err := ps.decisions.Preview(placement)
	if err != nil {
		return nil, err
	}
	if !sameDecision(promised, &status) {
		return nil, changed(listed(promised.Clusters), listed(status.Clusters))
	}
	placement.Status = inOrder(status, promised.Clusters)
	return ps.statusWrite(placement, current)
}

// keepWorkload gives a workload the previewed binding, and returns its write.
func (ps *previews) keepWorkload(promised *api.WorkloadStatus, workload *api.Workload, current *stored) ([]store.Write, error) {
	status, _, err := ps.decisions.PreviewWorkload(workload)
	if err != nil {
		return nil, err
	}
	if !sameBinding(promised, &status) {
		return nil, changed(bindingText(promised), bindingText(&status))
	}
	workload.Status = status
	return ps.statusWrite(workload, current)
}

// statusWrite writes the status that an object has been given over the one it
// was decided from.
func (ps *previews) statusWrite(object api.Object, current *stored) ([]store.Write, error) {
	write := store.Write{Key: api.KeyOf(object), Part: store.Status, Expect: store.Any}
	if current != nil {
		write.Expect = current.statusRevision
	}
	var err error
	if write.Value, err = ps.codec.EncodeStatus(object); err != nil {
		return nil, fmt.Errorf("encode the previewed decision: %w", err)
	}
	return []store.Write{write}, nil
}

// changed refuses a token because the decision is another one by now.
func changed(was, is string) *problem.Problem {
	return problem.New(api.ProblemFleetChanged, "the fleet changed since the preview: plan again: it showed %s, and the decision would now be %s", was, is)
}

// sameBinding reports whether two statuses of a workload are the same decision.
// The policy and the affinity group are part of it: they say what happens when a
// cluster is lost.
func sameBinding(a, b *api.WorkloadStatus) bool {
	return a.Policy == b.Policy && a.ObservedAffinity == b.ObservedAffinity &&
		maps.Equal(replicasByCluster(a), replicasByCluster(b)) && maps.Equal(a.Evicting(), b.Evicting()) &&
		maps.Equal(flavorByCluster(a), flavorByCluster(b))
}

// bindingText renders the binding of a workload for a message.
func bindingText(status *api.WorkloadStatus) string {
	text := replicasText(replicasByCluster(status))
	if flavors := flavorByCluster(status); len(flavors) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(flavors)) {
			parts = append(parts, name+": "+flavors[name])
		}
		text += " with flavors " + listed(parts)
	}
	if leaving := status.Evicting(); len(leaving) > 0 {
		text += ", leaving " + replicasText(leaving) + ","
	}
	if status.ObservedAffinity != "" {
		text += " of affinity group " + strconv.Quote(status.ObservedAffinity)
	}
	if status.Policy == "" {
		return text + " under no policy"
	}
	return text + " under policy " + strconv.Quote(status.Policy)
}

// replicasByCluster is where a workload runs.
func replicasByCluster(status *api.WorkloadStatus) map[string]int64 {
	replicas := make(map[string]int64, len(status.Clusters))
	for _, c := range status.Clusters {
		replicas[c.Name] = c.Replicas
	}
	return replicas
}

// flavorByCluster is what machines a workload has, where it has any.
func flavorByCluster(status *api.WorkloadStatus) map[string]string {
	flavors := map[string]string{}
	for _, c := range status.Clusters {
		if c.Flavor != "" {
			flavors[c.Name] = c.Flavor
		}
	}
	return flavors
}

// replicasText renders replicas by cluster for a message.
func replicasText(replicas map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(replicas)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, replicas[name]))
	}
	return listed(parts)
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

// listed renders names for a message; of very many it shows the first.
func listed(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("[%s and %d more]", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "[" + strings.Join(names, ", ") + "]"
}
