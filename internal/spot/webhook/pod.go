package webhook

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// pod is the part of a pod that is read. Containers, which are most of it, are skipped.
type pod struct {
	Metadata podMetadata `json:"metadata"`
	Spec     *podSpec    `json:"spec"`
}

type podMetadata struct {
	Name            string            `json:"name"`
	GenerateName    string            `json:"generateName"`
	Namespace       string            `json:"namespace"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
	OwnerReferences []ownerReference  `json:"ownerReferences"`
}

type ownerReference struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Controller bool      `json:"controller"`
}

type podSpec struct {
	NodeSelector map[string]string `json:"nodeSelector"`
	Affinity     *affinity         `json:"affinity"`
	Tolerations  []toleration      `json:"tolerations"`
}

// controller returns the ReplicaSet or StatefulSet that controls the pod.
func (p *pod) controller() (metav1.OwnerReference, bool) {
	for _, o := range p.Metadata.OwnerReferences {
		if !o.Controller {
			continue
		}
		group, _, _ := strings.Cut(o.APIVersion, "/")
		ours := group == "apps" && (o.Kind == "ReplicaSet" || o.Kind == api.KindStatefulSet)
		return metav1.OwnerReference{
			APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: new(true),
		}, ours
	}
	return metav1.OwnerReference{}, false
}

// admitPod steers a new pod to the right nodes.
func admitPod(ctx context.Context, cluster Cluster, r *request) answer {
	if r.Operation != admissionv1.Create || !r.isObject("", "Pod") {
		return allowed(resultUnchanged)
	}
	var p pod
	if err := read(r.Object, &p); err != nil {
		return unread(err)
	}
	owner, ours := p.controller()
	if !ours {
		return allowed(resultUnchanged)
	}
	if p.Spec == nil {
		return unread(errors.New("the pod has no spec"))
	}
	assignment := cluster.Assign(ctx, Creation{
		UID: r.UID, Name: cmp.Or(p.Metadata.Name, r.Name), GenerateName: p.Metadata.GenerateName,
		Namespace: cmp.Or(r.Namespace, p.Metadata.Namespace),
		Owner:     owner, Labels: p.Metadata.Labels, Pinned: p.Spec.pinned, DryRun: r.dryRun(),
	})
	switch {
	case assignment.Type == split.OnDemand, assignment.Type == split.Spot:
		return answer{result: resultPatched, patch: p.patch(r.UID, assignment)}
	case ctx.Err() != nil:
		return allowed(resultTimeout)
	}
	return allowed(resultUnchanged)
}

// patch makes the pod run on nodes of a type.
func (p *pod) patch(uid types.UID, a Assignment) patch {
	var out patch
	out.addEntries("/metadata/labels", p.Metadata.Labels != nil, entry{spot.LabelAffinity, string(a.Type)})
	annotations := []entry{{spot.AnnotationAdmission, string(uid)}}
	if _, own := p.Metadata.Annotations[split.AnnotationDeletionCost]; a.Cost != nil && !own {
		annotations = append(annotations, entry{split.AnnotationDeletionCost, strconv.FormatInt(int64(*a.Cost), 10)})
	}
	out.addEntries("/metadata/annotations", p.Metadata.Annotations != nil, annotations...)
	// If the pod's own rules already determine the type, nothing is added. If they exclude all
	// nodes of the type, the pod would never run.
	if onDemand, spots := p.Spec.allows(a.Label); !onDemand || !spots {
		return out
	}
	rule := a.Label.Requirement(a.Type)
	if a.Type == split.OnDemand {
		p.Spec.require(&out, requirement(rule))
		return out
	}
	p.Spec.prefer(&out, requirement(rule))
	p.Spec.tolerate(&out, a.Label)
	return out
}
