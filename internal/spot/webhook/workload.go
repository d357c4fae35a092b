package webhook

import (
	"context"
	"errors"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// workload is the part of a Deployment or StatefulSet that is read.
type workload struct {
	Metadata marks `json:"metadata"`
	Spec     struct {
		Replicas *int64 `json:"replicas"`
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Template struct {
			Metadata marks `json:"metadata"`
		} `json:"template"`
	} `json:"spec"`
}

// marks are the labels and annotations of an object.
type marks struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// replicas returns the requested replicas; the default of Kubernetes is one.
func (w *workload) replicas() int64 {
	if w.Spec.Replicas == nil {
		return 1
	}
	return *w.Spec.Replicas
}

func isSetting(key string) bool {
	// The names of all settings start with that of the first.
	return strings.HasPrefix(key, spot.LabelsEnabled[0]) || strings.HasPrefix(key, spot.LabelsEnabled[1])
}

// settings returns the labels or annotations that may be settings.
func settings(all map[string]string) map[string]string {
	some := map[string]string{}
	for key, value := range all {
		if isSetting(key) {
			some[key] = value
		}
	}
	return some
}

func (m *marks) sameSettings(other *marks) bool {
	return maps.Equal(settings(m.Labels), settings(other.Labels)) &&
		maps.Equal(settings(m.Annotations), settings(other.Annotations))
}

// checkWorkload rejects a Deployment or StatefulSet with invalid labels for a split.
func checkWorkload(_ context.Context, _ Cluster, r *request) answer {
	create, update := r.Operation == admissionv1.Create, r.Operation == admissionv1.Update
	if !create && !update || !r.isObject("apps", api.KindDeployment) && !r.isObject("apps", api.KindStatefulSet) {
		return allowed(resultUnchanged)
	}
	var w, old workload
	if err := read(r.Object, &w); err != nil {
		return unread(err)
	}
	same := false
	if update {
		if err := read(r.OldObject, &old); err != nil {
			return unread(err)
		}
		same = w.Metadata.sameSettings(&old.Metadata)
	}
	parsed, err := spot.ParseSettings(w.Metadata.Labels, w.Metadata.Annotations)
	switch {
	case err != nil && same:
		// It was invalid before the webhook existed: it must still be possible to scale it.
		return allowed(resultUnchanged)
	case err != nil:
		return invalid(r, settingsCauses(&w.Metadata, err))
	case same && w.replicas() == old.replicas():
		return allowed(resultUnchanged)
	}
	return answer{result: resultUnchanged, warnings: w.warnings(r.Kind.Kind, parsed)}
}

// settingsCauses returns what is wrong with the settings, each with its field.
func settingsCauses(m *marks, err error) []metav1.StatusCause {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	causes := make([]metav1.StatusCause, 0, len(all))
	for _, err := range all {
		cause := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: err.Error()}
		if wrong, ok := errors.AsType[*spot.SettingsError](err); ok {
			cause.Field = m.field(wrong.Key)
			cause.Message = cause.Field + ": " + wrong.Message
		}
		causes = append(causes, cause)
	}
	return causes
}

// field returns the field of a setting. If both a label and an annotation set an amount, the
// annotation is used.
func (m *marks) field(key string) string {
	where := "labels"
	if _, annotated := m.Annotations[key]; annotated {
		where = "annotations"
	}
	return "metadata." + where + "[" + key + "]"
}
