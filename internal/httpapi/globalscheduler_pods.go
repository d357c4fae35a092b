package httpapi

import (
	"context"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	gs "github.com/scheduler/terraform-provider-scheduler/internal/httpapi/globalscheduler"
)

type globalPodOutput struct {
	Status int
	Body   gs.PodAnswer
}

type globalPodsOutput struct {
	Body gs.PodList
}

type globalCreateInNamespace struct {
	Payload   GlobalPayload
	Namespace string `query:"namespace" doc:"Where the body names none. Default \"default\"."`
	Wait      string `query:"wait" doc:"How long to wait for the decision: 10s when absent, at most 60s, 0s not at all."`
}

type globalListPods struct {
	Namespace string `query:"namespace" doc:"Only pods of this namespace. Absent = of all that may be read."`
	Limit     int64  `query:"limit" minimum:"1" doc:"How many pods to return at most: 5000 when absent, and never more."`
	Continue  string `query:"continue" doc:"The continue of the page before."`
}

type globalPod struct {
	Name      string `path:"name" doc:"Name of the pod."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the pod."`
}

type globalDeletePod struct {
	Name      string `path:"name" doc:"Name of the pod."`
	Namespace string `query:"namespace" default:"default" doc:"Namespace of the pod."`
	Wait      string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

// globalPodRoutes adds pods.
func (s *Server) globalPodRoutes() {
	post := s.globalOperation(http.MethodPost, "/pods", "add-pod", "Create a pod and choose its site", http.StatusCreated, gs.PodAnswer{}, http.StatusConflict)
	register(s, post, s.addPod)
	s.describeGlobalBody(post, `{"name", "namespace", "labels", "flavors": [], "cpu", "memory" (MiB), "storage": {type: GB}, "eip", "priority", "selector": {"geo_location", "regions": [{"region", "availability_zone": []}], "operator", "site_id", "strategy": {"location_strategy", "region_strategy"}, "stack_affinity": [], "stack_antiaffinity": []}}, alone or under "pod", or the manifest of an Arktos pod.`)

	register(s, s.globalOperation(http.MethodGet, "/pods", "list-pods", "List pods", http.StatusOK, gs.PodList{}, http.StatusBadRequest), s.listPods)
	register(s, s.globalOperation(http.MethodGet, "/pods/id/{id}", "get-pod-by-id", "Read a pod", http.StatusOK, gs.PodAnswer{}, http.StatusNotFound),
		func(ctx context.Context, in *globalByID) (*globalPodOutput, error) {
			return s.getPod(ctx, func(who auth.Identity) *api.Workload { return s.workloadByID(who, in.ID, gs.IsPod) })
		})
	register(s, s.globalOperation(http.MethodGet, "/pods/name/{name}", "get-pod-by-name", "Read a pod", http.StatusOK, gs.PodAnswer{}, http.StatusNotFound),
		func(ctx context.Context, in *globalPod) (*globalPodOutput, error) {
			return s.getPod(ctx, func(who auth.Identity) *api.Workload { return s.workloadByName(who, in.Namespace, in.Name, gs.IsPod) })
		})
	register(s, s.globalOperation(http.MethodDelete, "/pods/id/{id}", "delete-pod-by-id", "Delete a pod", http.StatusOK, gs.Result{}, http.StatusNotFound),
		func(ctx context.Context, in *globalDeleteByID) (*resultOutput, error) {
			return s.deleteWorkload(ctx, "", in.Wait, func(who auth.Identity) *api.Workload { return s.workloadByID(who, in.ID, gs.IsPod) })
		})
	register(s, s.globalOperation(http.MethodDelete, "/pods/name/{name}", "delete-pod-by-name", "Delete a pod", http.StatusOK, gs.Result{}, http.StatusNotFound),
		func(ctx context.Context, in *globalDeletePod) (*resultOutput, error) {
			return s.deleteWorkload(ctx, in.Namespace, in.Wait, func(who auth.Identity) *api.Workload { return s.workloadByName(who, in.Namespace, in.Name, gs.IsPod) })
		})
}

func (s *Server) addPod(ctx context.Context, in *globalCreateInNamespace) (*globalPodOutput, error) {
	wait, err := parseWait(in.Wait, defaultWait)
	if err != nil {
		return nil, err
	}
	if err := checkGlobalBody(in.Payload.data); err != nil {
		return nil, err
	}
	pod, err := gs.ParsePod(in.Payload.data, in.Namespace)
	if err != nil {
		return nil, badRequest(err)
	}
	written, err := s.createOnly(ctx, pod)
	if err != nil {
		return nil, err
	}
	if decided, ok := s.settledObject(ctx, written, wait).(*api.Workload); ok {
		pod = decided
	}
	return &globalPodOutput{http.StatusCreated, gs.PodAnswer{Pod: gs.ShowPod(pod, s.visibleCluster(auth.Of(ctx)))}}, nil
}

func (s *Server) listPods(ctx context.Context, in *globalListPods) (*globalPodsOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadNamespace(in.Namespace); err != nil {
		return nil, err
	}
	limit := maxPage
	if in.Limit > 0 {
		limit = int(min(in.Limit, maxPage))
	}
	snapshot := s.fleet.Snapshot()
	entries := snapshot.All(api.KindWorkload, in.Namespace)
	if in.Continue != "" {
		after, err := afterPath(api.KindWorkload, in.Continue)
		if err != nil {
			return nil, err
		}
		entries = snapshot.After(after, in.Namespace)
	}
	cluster := s.visibleCluster(who)
	out := &globalPodsOutput{gs.PodList{Pods: []gs.Pod{}}}
	last := ""
	for entry := range entries {
		w, ok := entry.Object.(*api.Workload)
		if !ok || !gs.IsPod(w) || !who.Sees(auth.Owners(w)...) {
			continue
		}
		if len(out.Body.Pods) == limit {
			out.Body.Continue = last
			break
		}
		out.Body.Pods = append(out.Body.Pods, gs.ShowPod(w, cluster))
		last = api.KeyOf(w).Path()
	}
	return out, nil
}

func (s *Server) getPod(ctx context.Context, find func(who auth.Identity) *api.Workload) (*globalPodOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadNamespace(""); err != nil {
		return nil, err
	}
	pod := find(who)
	if pod == nil {
		return nil, newProblem(api.ProblemNotFound, "there is no such pod")
	}
	return &globalPodOutput{http.StatusOK, gs.PodAnswer{Pod: gs.ShowPod(pod, s.visibleCluster(who))}}, nil
}
