package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	gs "github.com/scheduler/terraform-provider-scheduler/internal/httpapi/globalscheduler"
)

type globalAllocationOutput struct {
	Status int
	Body   gs.AllocationAnswer
}

type globalAllocateInput struct {
	Payload   GlobalPayload
	Namespace string `query:"namespace" doc:"Where the body names none. Default \"default\"."`
}

type globalAllocation struct {
	ID        string `path:"id" doc:"Id of the allocation, which is the name of its workload."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the allocation."`
}

type globalDeleteAllocation struct {
	ID        string `path:"id" doc:"Id of the allocation, which is the name of its workload."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the allocation."`
	Wait      string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

// globalAllocationRoutes adds allocations.
func (s *Server) globalAllocationRoutes() {
	post := s.globalOperation(http.MethodPost, "/allocations", "allocate", "Choose sites for all replicas of a resource group, or for none", http.StatusCreated, gs.AllocationAnswer{}, http.StatusConflict)
	register(s, post, s.allocate)
	s.describeGlobalBody(post, `{"allocation": {"id", "namespace", "replicas", "resource_group": {"name", "labels", "resources": [{"name", "resource_type", "flavors": [{"flavor_id"}], "storage": {type: GB}, "need_eip", "count"}]}, "selector": as that of a pod}}`)

	register(s, s.globalOperation(http.MethodGet, "/allocations/id/{id}", "get-allocation", "Read an allocation", http.StatusOK, gs.AllocationAnswer{}, http.StatusNotFound), s.getAllocation)
	register(s, s.globalOperation(http.MethodDelete, "/allocations/id/{id}", "delete-allocation", "Delete an allocation", http.StatusOK, gs.Result{}, http.StatusNotFound),
		func(ctx context.Context, in *globalDeleteAllocation) (*resultOutput, error) {
			return s.deleteWorkload(ctx, in.Namespace, in.Wait, func(who auth.Identity) *api.Workload {
				return s.workloadByName(who, in.Namespace, in.ID, gs.IsAllocation)
			})
		})
}

func (s *Server) allocate(ctx context.Context, in *globalAllocateInput) (*globalAllocationOutput, error) {
	if err := checkGlobalBody(in.Payload.data); err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	workload, machines, err := gs.ParseAllocation(in.Payload.data, in.Namespace, newAllocationID, s.knowsFlavor(who))
	if err != nil {
		return nil, badRequest(err)
	}
	if err := who.MayWrite(workload); err != nil {
		return nil, err
	}
	if err := s.rights.MayRefer(who, workload, nil); err != nil {
		return nil, err
	}
	// What one allocation takes, the next must not count on.
	if err := s.allocating.take(ctx); err != nil {
		return nil, err
	}
	defer s.allocating.give()
	// What does not fit is never written: nothing could withdraw it if the server
	// stopped in between.
	var explanation *api.Explanation
	s.catchUp(ctx)
	key := api.KeyOf(workload)
	if s.fleet.Snapshot().Get(key) != nil {
		return nil, newProblem(api.ProblemAlreadyExists, "%s exists already", key)
	}
	fits, err := gs.Choose(workload, machines, func() (bool, error) {
		created := *workload
		created.Metadata.Generation = 1
		var err error
		created.Status, explanation, err = s.decisions.PreviewWorkload(&created)
		return err == nil && gs.Placed(&created) == *workload.Spec.Replicas, err
	})
	if err != nil {
		return nil, err
	}
	if !fits {
		return nil, s.refusal(who, workload, explanation)
	}
	written, err := s.createOnly(ctx, workload)
	if err != nil {
		return nil, err
	}
	decided, ok := s.settledObject(ctx, written, defaultWait).(*api.Workload)
	if ok && gs.Placed(decided) == *workload.Spec.Replicas {
		return &globalAllocationOutput{http.StatusCreated, gs.AllocationAnswer{Allocation: gs.ShowAllocation(decided, s.visibleCluster(who))}}, nil
	}
	refusal := s.unplaced(who, decided)
	// It must not be placed later, when nobody expects it any more; that the
	// client went away makes no difference.
	revision, err := s.remove(context.WithoutCancel(ctx), key, precondition{})
	if err != nil {
		return nil, fmt.Errorf("take back %s: %w", key, err)
	}
	s.settle(ctx, revision, 0)
	return nil, refusal
}

// unplaced says why an allocation was not placed that would have been a moment
// before.
func (s *Server) unplaced(who auth.Identity, workload *api.Workload) error {
	if workload.Status.ObservedGeneration != workload.Metadata.Generation {
		return unavailable("the decision was not made in time: nothing was allocated; repeat the request")
	}
	explanation, err := s.decisions.Explain(api.KeyOf(workload))
	if err != nil {
		explanation = nil // deleted in between: there is nobody to explain
	}
	return s.refusal(who, workload, explanation)
}

// refusal says why an allocation is not placed, with the room that each site has.
func (s *Server) refusal(who auth.Identity, workload *api.Workload, explanation *api.Explanation) error {
	p := newProblem(api.ProblemNoRoom, "nothing was allocated: the sites do not have room for all %d replicas", *workload.Spec.Replicas)
	if explanation == nil {
		return p
	}
	p.Detail += ": " + explanation.Summary
	cluster := s.visibleCluster(who)
	for _, candidate := range s.rights.Visible(who, explanation).Candidates {
		c := cluster(candidate.Cluster)
		if c == nil {
			continue
		}
		site, ok := gs.SiteOf(c)
		if !ok {
			continue
		}
		message := candidate.Reason
		if candidate.Available != nil {
			message = fmt.Sprintf("has room for %d", *candidate.Available)
		}
		p.Errors = append(p.Errors, api.FieldError{Field: site.ID(), Message: message})
	}
	return p
}

// newAllocationID names an allocation that the client gave no id.
func newAllocationID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	return "allocation-" + hex.EncodeToString(id[:])
}

// knowsFlavor finds out whether any cluster or cloud has a flavor.
func (s *Server) knowsFlavor(who auth.Identity) func(name string) bool {
	return func(name string) bool {
		snapshot := s.fleet.Snapshot()
		for entry := range snapshot.All(api.KindCluster, "") {
			c, ok := entry.Object.(*api.Cluster)
			if ok && who.Sees(auth.Owners(c)...) && slices.ContainsFunc(c.Spec.Flavors, func(f api.ClusterFlavor) bool { return f.Name == name }) {
				return true
			}
		}
		for entry := range snapshot.All(api.KindCloud, "") {
			c, ok := entry.Object.(*api.Cloud)
			if !ok || !who.Sees(auth.Owners(c)...) {
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

func (s *Server) getAllocation(ctx context.Context, in *globalAllocation) (*globalAllocationOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadNamespace(in.Namespace); err != nil {
		return nil, err
	}
	workload := s.workloadByName(who, in.Namespace, in.ID, gs.IsAllocation)
	if workload == nil {
		return nil, newProblem(api.ProblemNotFound, "there is no such allocation")
	}
	return &globalAllocationOutput{http.StatusOK, gs.AllocationAnswer{Allocation: gs.ShowAllocation(workload, s.visibleCluster(who))}}, nil
}
