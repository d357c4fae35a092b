package webhook

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// reviewVersion is the only version that the webhook is registered for.
var reviewVersion = admissionv1.SchemeGroupVersion.String()

const (
	reviewKind = "AdmissionReview"

	// maxUID is the maximum length of a request's UID, which becomes an annotation.
	maxUID = 256
	// maxWarning is the maximum length of a warning: the API server truncates longer ones.
	maxWarning = 256
	// maxWarnings is the maximum number of warnings.
	maxWarnings = 8
)

// request is an AdmissionRequest.
type request admissionv1.AdmissionRequest

// isObject reports whether the request is about a whole object rather than a subresource such as
// its scale.
func (r *request) isObject(group, kind string) bool {
	return r.SubResource == "" && r.Kind.Group == group && r.Kind.Kind == kind
}

// dryRun reports whether the object will not be stored.
func (r *request) dryRun() bool { return r.DryRun != nil && *r.DryRun }

// read decodes an object of a request. A null object is empty.
func read(object runtime.RawExtension, into any) error {
	if object.Raw == nil {
		return nil
	}
	return json.Unmarshal(object.Raw, into)
}

// decodeRequest decodes an AdmissionReview. If that fails, the request has its UID, so that it can
// be answered, or none if it cannot be answered.
func decodeRequest(body []byte) (request, error) {
	var review admissionv1.AdmissionReview
	err := json.Unmarshal(body, &review)
	if err != nil {
		// The UID may come after what cannot be decoded.
		var known struct {
			Request *struct {
				UID types.UID `json:"uid"`
			} `json:"request"`
		}
		if again := json.Unmarshal(body, &known); again != nil {
			return request{}, fmt.Errorf("the body is not of kind %s: %w", reviewKind, err)
		}
		if review.Request = nil; known.Request != nil {
			review.Request = &admissionv1.AdmissionRequest{UID: known.Request.UID}
		}
	} else if review.APIVersion != reviewVersion || review.Kind != reviewKind {
		err = fmt.Errorf("the body is not of kind %s in %s", reviewKind, reviewVersion)
	}
	switch {
	case review.Request == nil || review.Request.UID == "":
		return request{}, fmt.Errorf("the %s has no request with a uid", reviewKind)
	case len(review.Request.UID) > maxUID:
		return request{}, fmt.Errorf("the uid of the request has more than %d bytes", maxUID)
	}
	return request(*review.Request), err
}

// answer is the response to a request. The zero value allows it unchanged.
type answer struct {
	result   result
	denied   *metav1.Status
	patch    patch
	warnings []string
}

// allowed allows a request unchanged.
func allowed(r result) answer { return answer{result: r} }

// unread allows a request that could not be decoded. That is not the user's fault, and must not
// prevent a pod from running.
func unread(err error) answer {
	return answer{result: resultUnread, warnings: []string{"not checked by the scheduler: " + err.Error()}}
}

// invalid rejects an object because of its fields.
func invalid(r *request, causes []metav1.StatusCause) answer {
	messages := make([]string, len(causes))
	for i, cause := range causes {
		messages[i] = cause.Message
	}
	return answer{result: resultDenied, denied: &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		Message: strings.Join(messages, "; "),
		Details: &metav1.StatusDetails{Name: r.Name, Group: r.Kind.Group, Kind: r.Kind.Kind, Causes: causes},
	}}
}

// encode returns the AdmissionReview that answers a request.
func (a answer) encode(uid types.UID) ([]byte, error) {
	response := &admissionv1.AdmissionResponse{UID: uid, Allowed: a.denied == nil, Result: a.denied, Warnings: shorten(a.warnings)}
	if len(a.patch) > 0 {
		encoded, err := json.Marshal(a.patch)
		if err != nil {
			return nil, fmt.Errorf("encode the patch: %w", err)
		}
		response.Patch, response.PatchType = encoded, new(admissionv1.PatchTypeJSONPatch)
	}
	review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: reviewVersion, Kind: reviewKind}, Response: response}
	return json.Marshal(review, jsonv1.DefaultOptionsV1()) // the tags of Kubernetes types require v1 semantics
}

// shorten limits warnings to what the API server forwards.
func shorten(warnings []string) []string {
	if len(warnings) > maxWarnings {
		warnings = warnings[:maxWarnings]
	}
	for i, warning := range warnings {
		if len(warning) > maxWarning {
			warnings[i] = api.Shorten(warning, maxWarning-len("…"))
		}
	}
	return warnings
}
