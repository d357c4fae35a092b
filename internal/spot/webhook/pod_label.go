package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// checkPodLabels rejects changing the type label of a running pod, because its affinity cannot
// change with it.
func checkPodLabels(_ context.Context, _ Cluster, r *request) answer {
	if r.Operation != admissionv1.Update || !r.isObject("", "Pod") {
		return allowed(resultUnchanged)
	}
	type labelled struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	var pod, old labelled
	if err := read(r.Object, &pod); err != nil {
		return unread(err)
	}
	if err := read(r.OldObject, &old); err != nil {
		return unread(err)
	}
	var causes []metav1.StatusCause
	for _, key := range spot.LabelsAffinity {
		was, had := old.Metadata.Labels[key]
		is, has := pod.Metadata.Labels[key]
		if !had || has && is == was {
			continue
		}
		field, change := "metadata.labels["+key+"]", fmt.Sprintf("must stay %q and not become %q", was, is)
		if !has {
			change = fmt.Sprintf("must stay %q and not be removed", was)
		}
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: field,
			Message: field + ": " + change + ": it records which nodes the pod was created for; delete the pod to have it created again",
		})
	}
	if causes == nil {
		return allowed(resultUnchanged)
	}
	return invalid(r, causes)
}
