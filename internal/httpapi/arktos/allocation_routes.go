package arktos

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

type allocationOutput struct {
	Status int
	Body   AllocationAnswer
}

type allocateInput struct {
	Payload   Payload
	Namespace string `query:"namespace" doc:"Namespace, if the body does not set one. Default \"default\"."`
}

type allocationByIDInput struct {
	ID        string `path:"id" doc:"ID of the allocation, which is the name of its workload."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the allocation."`
}

type deleteAllocationInput struct {
	ID        string `path:"id" doc:"ID of the allocation, which is the name of its workload."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the allocation."`
	Wait      string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

// allocationRoutes adds the routes of allocations.
func (h *handler) allocationRoutes() {
	post := h.operation(http.MethodPost, "/allocations", "allocate", "Choose sites for all replicas of a resource group, or for none", http.StatusCreated, AllocationAnswer{}, http.StatusConflict)
	operation.Register(h.api, post, h.allocate)
	h.describeBody(post, `{"allocation": {"id", "namespace", "replicas", "resource_group": {"name", "labels", "resources": [{"name", "resource_type", "flavors": [{"flavor_id"}], "storage": {type: GB}, "need_eip", "count"}]}, "selector": as that of a pod}}`)

	operation.Register(h.api, h.operation(http.MethodGet, "/allocations/id/{id}", "get-allocation", "Read an allocation", http.StatusOK, AllocationAnswer{}, http.StatusNotFound), h.getAllocation)
	operation.Register(h.api, h.operation(http.MethodDelete, "/allocations/id/{id}", "delete-allocation", "Delete an allocation", http.StatusOK, Result{}, http.StatusNotFound),
		func(ctx context.Context, in *deleteAllocationInput) (*resultOutput, error) {
			return h.deleteWorkload(ctx, in.Namespace, in.Wait, func(who auth.Identity) *api.Workload {
				return h.workloadByName(who, in.Namespace, in.ID, isAllocation)
			})
		})
}

func (h *handler) allocate(ctx context.Context, in *allocateInput) (*allocationOutput, error) {
	if err := checkBody(in.Payload.Data); err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	workload, machines, err := parseAllocation(in.Payload.Data, in.Namespace, newAllocationID, h.knowsFlavor(who))
	if err != nil {
		return nil, badRequest(err)
	}
	if err := who.MayWrite(workload); err != nil {
		return nil, err
	}
	// An allocation that turns out not to fit is deleted again.
	if err := h.rights.MayDelete(who, workload); err != nil {
		return nil, err
	}
	if err := h.rights.MayRefer(who, workload, nil); err != nil {
		return nil, err
	}
	// Allocations are decided one at a time, so that they do not count on the same resources.
	if err := h.allocating.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer h.allocating.Release(1)
	// If it does not fit, it is never written: if the server stopped in between, nothing would
	// delete it.
	var explanation *api.Explanation
	h.backend.CatchUp(ctx)
	key := api.KeyOf(workload)
	if h.fleet.Snapshot().Get(key) != nil {
		return nil, problem.New(api.ProblemAlreadyExists, "%s exists already", key)
	}
	fits, err := chooseFlavors(workload, machines, func() (bool, error) {
		created := *workload
		created.Metadata.Generation = 1
		var err error
		created.Status, explanation, err = h.backend.PreviewWorkload(ctx, &created)
		return err == nil && placedReplicas(&created) == *workload.Spec.Replicas, err
	})
	if err != nil {
		return nil, err
	}
	if !fits {
		return nil, h.refusal(who, workload, explanation)
	}
	written, revision, err := h.backend.Create(ctx, workload)
	if err != nil {
		return nil, err
	}
	decided, ok := h.decided(ctx, written, revision, operation.DefaultWait).(*api.Workload)
	if ok && placedReplicas(decided) == *workload.Spec.Replicas {
		return &allocationOutput{http.StatusCreated, AllocationAnswer{Allocation: showAllocation(decided, h.visibleCluster(who))}}, nil
	}
	refusal := h.unplaced(who, decided)
	// It must not be placed later when nobody expects it anymore, even if the client has gone away.
	revision, err = h.backend.Remove(context.WithoutCancel(ctx), key)
	if err != nil {
		return nil, fmt.Errorf("take back %s: %w", key, err)
	}
	h.backend.Await(ctx, revision, 0)
	return nil, refusal
}

// unplaced returns the error for an allocation that was not placed although it would have been a
// moment before.
func (h *handler) unplaced(who auth.Identity, workload *api.Workload) error {
	if workload.Status.ObservedGeneration != workload.Metadata.Generation {
		return problem.Unavailable("the decision was not made in time: nothing was allocated; repeat the request")
	}
	explanation, err := h.backend.Explain(api.KeyOf(workload))
	if err != nil {
		explanation = nil // deleted in between: there is no explanation
	}
	return h.refusal(who, workload, explanation)
}

// refusal returns the error for an allocation that does not fit, with the room of each site.
func (h *handler) refusal(who auth.Identity, workload *api.Workload, explanation *api.Explanation) error {
	p := problem.New(api.ProblemNoRoom, "nothing was allocated: the sites do not have room for all %d replicas", *workload.Spec.Replicas)
	if explanation == nil {
		return p
	}
	p.Detail += ": " + explanation.Summary
	cluster := h.visibleCluster(who)
	for _, candidate := range h.rights.Visible(who, explanation).Candidates {
		c := cluster(candidate.Cluster)
		if c == nil {
			continue
		}
		site, ok := siteOf(c)
		if !ok {
			continue
		}
		message := candidate.Reason
		if candidate.Available != nil {
			message = fmt.Sprintf("has room for %d", *candidate.Available)
		}
		p.Errors.Add(site.ID(), "%s", message)
	}
	return p
}

// newAllocationID generates the ID of an allocation without one.
func newAllocationID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand crashes the program instead
	return "allocation-" + hex.EncodeToString(id[:])
}

// knowsFlavor returns a function that reports whether any cluster or cloud has a flavor.
func (h *handler) knowsFlavor(who auth.Identity) func(name string) bool {
	return func(name string) bool {
		snapshot := h.fleet.Snapshot()
		for entry := range snapshot.All(api.KindCluster, "") {
			c, ok := entry.Object.(*api.Cluster)
			if ok && who.Reads(c.ObjectKind(), auth.Owners(c)...) && slices.ContainsFunc(c.Spec.Flavors, func(f api.ClusterFlavor) bool { return f.Name == name }) {
				return true
			}
		}
		for entry := range snapshot.All(api.KindCloud, "") {
			c, ok := entry.Object.(*api.Cloud)
			if !ok || !who.Reads(c.ObjectKind(), auth.Owners(c)...) {
				continue
			}
			for i := range c.Status.Regions {
				if slices.ContainsFunc(c.Status.Regions[i].Flavors, func(f api.CloudFlavor) bool { return f.Name == name }) {
					return true
				}
			}
		}
		return false
	}
}

func (h *handler) getAllocation(ctx context.Context, in *allocationByIDInput) (*allocationOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadIn(api.KindWorkload, in.Namespace); err != nil {
		return nil, err
	}
	workload := h.workloadByName(who, in.Namespace, in.ID, isAllocation)
	if workload == nil {
		return nil, problem.New(api.ProblemNotFound, "there is no such allocation")
	}
	return &allocationOutput{http.StatusOK, AllocationAnswer{Allocation: showAllocation(workload, h.visibleCluster(who))}}, nil
}
