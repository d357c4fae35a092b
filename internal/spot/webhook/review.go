package webhook

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
)

const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"

	operationCreate = "CREATE"
	operationUpdate = "UPDATE"

	// maxUID is how long the UID of a request may be: it becomes an annotation.
	maxUID = 256
	// maxWarning is how long a warning may be: the API server cuts longer ones.
	maxWarning = 256
	// maxWarnings is how many there may be of them.
	maxWarnings = 8
)

// request is what is read of an AdmissionRequest.
type request struct {
	UID         types.UID      `json:"uid"`
	Kind        groupKind      `json:"kind"`
	SubResource string         `json:"subResource"`
	Name        string         `json:"name"`
	Namespace   string         `json:"namespace"`
	Operation   string         `json:"operation"`
	Object      jsontext.Value `json:"object"`
	OldObject   jsontext.Value `json:"oldObject"`
	DryRun      bool           `json:"dryRun"`
}

// groupKind is the type of an object.
type groupKind struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

// isObject reports whether the request is about a whole object, not about a part of
// it such as its scale.
func (r *request) isObject(group, kind string) bool {
	return r.SubResource == "" && r.Kind == groupKind{group, kind}
}

// decodeRequest reads an AdmissionReview. Where it fails, the request has its UID, so
// that it can be answered, or none where there is nothing that could be answered.
func decodeRequest(body []byte) (request, error) {
	var review struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Request    request `json:"request"`
	}
	err := json.Unmarshal(body, &review)
	if err != nil {
		// The UID may come after what cannot be read.
		var known struct {
			Request struct {
				UID types.UID `json:"uid"`
			} `json:"request"`
		}
		if again := json.Unmarshal(body, &known); again != nil {
			return request{}, fmt.Errorf("the body is no %s: %w", reviewKind, err)
		}
		review.Request.UID = known.Request.UID
	} else if review.APIVersion != reviewVersion || review.Kind != reviewKind {
		err = fmt.Errorf("the body is no %s of %s", reviewKind, reviewVersion)
	}
	switch uid := review.Request.UID; {
	case uid == "":
		return request{}, fmt.Errorf("the %s has no request with a uid", reviewKind)
	case len(uid) > maxUID:
		return request{}, fmt.Errorf("the uid of the request has more than %d bytes", maxUID)
	}
	return review.Request, err
}

// answer is what is said to a request. The zero value allows it as it is.
type answer struct {
	result   result
	denied   *status
	patch    patch
	warnings []string
}

// allowed lets a request pass as it is.
func allowed(r result) answer { return answer{result: r} }

// unread lets a request pass that could not be understood. It is no fault of who
// sent it, or none that should keep a pod from running.
func unread(err error) answer {
	return answer{result: resultUnread, warnings: []string{"not looked at by the scheduler: " + err.Error()}}
}

// status is the part of a metav1.Status that tells a client why it is refused.
type status struct {
	Status  string         `json:"status"`
	Message string         `json:"message"`
	Reason  string         `json:"reason"`
	Code    int32          `json:"code"`
	Details *statusDetails `json:"details,omitempty"`
}

type statusDetails struct {
	Name   string        `json:"name,omitempty"`
	Group  string        `json:"group,omitempty"`
	Kind   string        `json:"kind,omitempty"`
	Causes []statusCause `json:"causes,omitempty"`
}

type statusCause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
}

// invalid refuses an object for what its fields say.
func invalid(r *request, causes []statusCause) answer {
	messages := make([]string, len(causes))
	for i, cause := range causes {
		messages[i] = cause.Message
	}
	return answer{result: resultDenied, denied: &status{
		Status: "Failure", Reason: "Invalid", Code: 422,
		Message: strings.Join(messages, "; "),
		Details: &statusDetails{Name: r.Name, Group: r.Kind.Group, Kind: r.Kind.Kind, Causes: causes},
	}}
}

// encode is the AdmissionReview that answers a request.
func (a answer) encode(uid types.UID) ([]byte, error) {
	type response struct {
		UID       types.UID `json:"uid"`
		Allowed   bool      `json:"allowed"`
		Status    *status   `json:"status,omitempty"`
		PatchType string    `json:"patchType,omitempty"`
		Patch     []byte    `json:"patch,omitempty"`
		Warnings  []string  `json:"warnings,omitempty"`
	}
	review := struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Response   response `json:"response"`
	}{reviewVersion, reviewKind, response{UID: uid, Allowed: a.denied == nil, Status: a.denied, Warnings: shorten(a.warnings)}}
	if len(a.patch) > 0 {
		encoded, err := json.Marshal(a.patch)
		if err != nil {
			return nil, fmt.Errorf("encode the patch: %w", err)
		}
		review.Response.Patch, review.Response.PatchType = encoded, "JSONPatch"
	}
	return json.Marshal(review, jsontext.AllowInvalidUTF8(true))
}

// shorten keeps warnings within what the API server passes on.
func shorten(warnings []string) []string {
	if len(warnings) > maxWarnings {
		warnings = warnings[:maxWarnings]
	}
	for i, warning := range warnings {
		if len(warning) <= maxWarning {
			continue
		}
		end := maxWarning - len("…")
		for end > 0 && !utf8.RuneStart(warning[end]) {
			end--
		}
		warnings[i] = warning[:end] + "…"
	}
	return warnings
}
