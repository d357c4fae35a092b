package arktos

import (
	"context"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

type podOutput struct {
	Status int
	Body   PodAnswer
}

type podsOutput struct {
	Body PodList
}

type createInNamespaceInput struct {
	Payload   Payload
	Namespace string `query:"namespace" doc:"Namespace, if the body does not set one. Default \"default\"."`
	Wait      string `query:"wait" doc:"How long to wait for the decision: default 10s, at most 60s, 0s to not wait."`
}

type listPodsInput struct {
	Namespace string `query:"namespace" doc:"Only pods of this namespace. If omitted, of all namespaces that the token may read."`
	Limit     int64  `query:"limit" minimum:"1" doc:"Largest number of pods to return: default and maximum 5000."`
	Continue  string `query:"continue" doc:"The continue token of the previous page."`
}

type podByNameInput struct {
	Name      string `path:"name" doc:"Name of the pod."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the pod."`
}

type deletePodByNameInput struct {
	Name      string `path:"name" doc:"Name of the pod."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the pod."`
	Wait      string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

// podRoutes adds the routes of pods.
func (h *handler) podRoutes() {
	post := h.operation(http.MethodPost, "/pods", "add-pod", "Create a pod and choose its site", http.StatusCreated, PodAnswer{}, http.StatusConflict)
	operation.Register(h.api, post, h.addPod)
	h.describeBody(post, `{"name", "namespace", "labels", "flavors": [], "cpu", "memory" (MiB), "storage": {type: GB}, "eip", "priority", "selector": {"geo_location", "regions": [{"region", "availability_zone": []}], "operator", "site_id", "strategy": {"location_strategy", "region_strategy"}, "stack_affinity": [], "stack_antiaffinity": []}}, alone or under "pod", or the manifest of an Arktos pod.`)

	operation.Register(h.api, h.operation(http.MethodGet, "/pods", "list-pods", "List pods", http.StatusOK, PodList{}, http.StatusBadRequest), h.listPods)
	operation.Register(h.api, h.operation(http.MethodGet, "/pods/id/{id}", "get-pod-by-id", "Read a pod", http.StatusOK, PodAnswer{}, http.StatusNotFound),
		func(ctx context.Context, in *byIDInput) (*podOutput, error) {
			return h.getPod(ctx, func(who auth.Identity) *api.Workload { return h.workloadByID(who, in.ID, isPod) })
		})
	operation.Register(h.api, h.operation(http.MethodGet, "/pods/name/{name}", "get-pod-by-name", "Read a pod", http.StatusOK, PodAnswer{}, http.StatusNotFound),
		func(ctx context.Context, in *podByNameInput) (*podOutput, error) {
			return h.getPod(ctx, func(who auth.Identity) *api.Workload { return h.workloadByName(who, in.Namespace, in.Name, isPod) })
		})
	operation.Register(h.api, h.operation(http.MethodDelete, "/pods/id/{id}", "delete-pod-by-id", "Delete a pod", http.StatusOK, Result{}, http.StatusNotFound),
		func(ctx context.Context, in *deleteByIDInput) (*resultOutput, error) {
			return h.deleteWorkload(ctx, "", in.Wait, func(who auth.Identity) *api.Workload { return h.workloadByID(who, in.ID, isPod) })
		})
	operation.Register(h.api, h.operation(http.MethodDelete, "/pods/name/{name}", "delete-pod-by-name", "Delete a pod", http.StatusOK, Result{}, http.StatusNotFound),
		func(ctx context.Context, in *deletePodByNameInput) (*resultOutput, error) {
			return h.deleteWorkload(ctx, in.Namespace, in.Wait, func(who auth.Identity) *api.Workload { return h.workloadByName(who, in.Namespace, in.Name, isPod) })
		})
}

func (h *handler) addPod(ctx context.Context, in *createInNamespaceInput) (*podOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	if err := checkBody(in.Payload.Data); err != nil {
		return nil, err
	}
	pod, err := parsePod(in.Payload.Data, in.Namespace)
	if err != nil {
		return nil, badRequest(err)
	}
	written, revision, err := h.backend.Create(ctx, pod)
	if err != nil {
		return nil, err
	}
	if decided, ok := h.decided(ctx, written, revision, wait).(*api.Workload); ok {
		pod = decided
	}
	return &podOutput{http.StatusCreated, PodAnswer{Pod: showPod(pod, h.visibleCluster(auth.Of(ctx)))}}, nil
}

func (h *handler) listPods(ctx context.Context, in *listPodsInput) (*podsOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadIn(api.KindWorkload, in.Namespace); err != nil {
		return nil, err
	}
	limit := operation.MaxPage
	if in.Limit > 0 {
		limit = int(min(in.Limit, operation.MaxPage))
	}
	snapshot := h.fleet.Snapshot()
	entries := snapshot.All(api.KindWorkload, in.Namespace)
	if in.Continue != "" {
		after, err := afterPath(api.KindWorkload, in.Continue)
		if err != nil {
			return nil, err
		}
		entries = snapshot.After(after, in.Namespace)
	}
	cluster := h.visibleCluster(who)
	out := &podsOutput{PodList{Pods: []Pod{}}}
	last := ""
	for entry := range entries {
		w, ok := entry.Object.(*api.Workload)
		if !ok || !isPod(w) || !who.Reads(api.KindWorkload, auth.Owners(w)...) {
			continue
		}
		if len(out.Body.Pods) == limit {
			out.Body.Continue = last
			break
		}
		out.Body.Pods = append(out.Body.Pods, showPod(w, cluster))
		last = api.KeyOf(w).Path()
	}
	return out, nil
}

func (h *handler) getPod(ctx context.Context, find func(who auth.Identity) *api.Workload) (*podOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadKind(api.KindWorkload); err != nil {
		return nil, err
	}
	pod := find(who)
	if pod == nil {
		return nil, problem.New(api.ProblemNotFound, "there is no such pod")
	}
	return &podOutput{http.StatusOK, PodAnswer{Pod: showPod(pod, h.visibleCluster(who))}}, nil
}
