package api

import (
	"slices"
)

// Problem is an error answer (RFC 9457).
type Problem struct {
	Type   ProblemType `json:"type,omitempty" doc:"Type of the problem, for programs. The guide on errors lists all types."`
	Title  string      `json:"title" doc:"Short summary of the type."`
	Status int         `json:"status" doc:"HTTP status code."`
	Detail string      `json:"detail,omitempty" doc:"What went wrong in this case."`
	Errors FieldErrors `json:"errors,omitempty" doc:"Invalid fields."`
}

// Error is the problem as one line.
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if len(p.Errors) > 0 {
		text += ": " + p.Errors.Error()
	}
	return text
}

// ProblemType is the URI of a type of problem. Programs tell problems apart by it:
// the words are for people, and change.
type ProblemType string

const problemPrefix = "urn:scheduler:problem:"

// The types of problem. ProblemTypes describes each of them.
const (
	ProblemMalformed            ProblemType = problemPrefix + "malformed"
	ProblemBadContinue          ProblemType = problemPrefix + "bad-continue"
	ProblemUnauthenticated      ProblemType = problemPrefix + "unauthenticated"
	ProblemForbidden            ProblemType = problemPrefix + "forbidden"
	ProblemCrossOrigin          ProblemType = problemPrefix + "cross-origin"
	ProblemNotFound             ProblemType = problemPrefix + "not-found"
	ProblemUnknownPath          ProblemType = problemPrefix + "unknown-path"
	ProblemPreviewNotFound      ProblemType = problemPrefix + "preview-not-found"
	ProblemMethodNotAllowed     ProblemType = problemPrefix + "method-not-allowed"
	ProblemNotAcceptable        ProblemType = problemPrefix + "not-acceptable"
	ProblemRequestTimeout       ProblemType = problemPrefix + "request-timeout"
	ProblemConflict             ProblemType = problemPrefix + "conflict"
	ProblemAlreadyExists        ProblemType = problemPrefix + "already-exists"
	ProblemSiteTaken            ProblemType = problemPrefix + "site-taken"
	ProblemNoRoom               ProblemType = problemPrefix + "no-room"
	ProblemReportOutOfOrder     ProblemType = problemPrefix + "report-out-of-order"
	ProblemSpotDisabled         ProblemType = problemPrefix + "spot-disabled"
	ProblemNoCredentials        ProblemType = problemPrefix + "no-credentials"
	ProblemRevisionGone         ProblemType = problemPrefix + "revision-gone"
	ProblemObjectChanged        ProblemType = problemPrefix + "object-changed"
	ProblemObjectExists         ProblemType = problemPrefix + "object-exists"
	ProblemObjectMissing        ProblemType = problemPrefix + "object-missing"
	ProblemPreviewExpired       ProblemType = problemPrefix + "preview-expired"
	ProblemPreviewMismatch      ProblemType = problemPrefix + "preview-mismatch"
	ProblemFleetChanged         ProblemType = problemPrefix + "fleet-changed"
	ProblemTooLarge             ProblemType = problemPrefix + "too-large"
	ProblemUnsupportedMediaType ProblemType = problemPrefix + "unsupported-media-type"
	ProblemInvalid              ProblemType = problemPrefix + "invalid"
	ProblemTooManyRequests      ProblemType = problemPrefix + "too-many-requests"
	ProblemTooManyLogins        ProblemType = problemPrefix + "too-many-failed-logins"
	ProblemClientClosed         ProblemType = problemPrefix + "client-closed-request"
	ProblemInternal             ProblemType = problemPrefix + "internal"
	ProblemDamaged              ProblemType = problemPrefix + "damaged"
	ProblemCloudUnreachable     ProblemType = problemPrefix + "cloud-unreachable"
	ProblemUnavailable          ProblemType = problemPrefix + "unavailable"
	ProblemUnconfirmed          ProblemType = problemPrefix + "unconfirmed"
	ProblemStoreFull            ProblemType = problemPrefix + "store-full"
)

// ProblemInfo describes a type of problem.
type ProblemInfo struct {
	Type   ProblemType
	Status int
	Title  string
	// Doc says when it occurs, and what to do.
	Doc string
}

// ProblemTypes are all types of problem, by status. Of those with one status the
// first is the general one. The answers of the server, its OpenAPI document and
// the guide on errors are made from this table.
var ProblemTypes = []ProblemInfo{
	{ProblemMalformed, 400, "Bad Request", "The body is not JSON or was cut off, a header or a parameter cannot be read, or a field breaks a rule of the Arktos API. Mend the request."},
	{ProblemBadContinue, 400, "Bad Request", "The `continue` token is not one of this server, or is that of another list. Begin the list again."},
	{ProblemUnauthenticated, 401, "Unauthorized", "There is no bearer token, or one that the server does not know."},
	{ProblemForbidden, 403, "Forbidden", "The token's role or namespaces do not allow it, or the object names another one that the token must not read: `errors` has the fields then. It does not say whether the object exists."},
	{ProblemCrossOrigin, 403, "Forbidden", "A browser sent the request from a page of another site, which must not change anything."},
	{ProblemNotFound, 404, "Not Found", "The object does not exist."},
	{ProblemUnknownPath, 404, "Not Found", "The API has nothing at this path."},
	{ProblemPreviewNotFound, 404, "Not Found", "The preview does not exist or has expired. Make another one."},
	{ProblemMethodNotAllowed, 405, "Method Not Allowed", "The path does not take this method; the header `Allow` says which it takes."},
	{ProblemNotAcceptable, 406, "Not Acceptable", "The server has no answer of the media type that `Accept` asks for."},
	{ProblemRequestTimeout, 408, "Request Timeout", "The body did not arrive in time."},
	{ProblemConflict, 409, "Conflict", "Others write the object at the same time. Read it again, and repeat the request."},
	{ProblemAlreadyExists, 409, "Conflict", "An object of this name exists, and the request may only create one."},
	{ProblemSiteTaken, 409, "Conflict", "Another cluster stands for the same region and availability zone."},
	{ProblemNoRoom, 409, "Conflict", "The sites do not have room for the allocation; nothing was allocated."},
	{ProblemReportOutOfOrder, 409, "Conflict", "The report of a collector does not follow on the last one. Send a full one."},
	{ProblemSpotDisabled, 409, "Conflict", "The cluster does not split workloads over on-demand and spot nodes: `spot` is not enabled, or there is no kubeconfig."},
	{ProblemNoCredentials, 409, "Conflict", "The cloud has no credentials by which the server could ask it."},
	{ProblemRevisionGone, 410, "Gone", "The revision that a list or a watch goes on from is no longer kept. Begin again."},
	{ProblemObjectChanged, 412, "Precondition Failed", "`If-Match`: the object has changed since the version that the request names."},
	{ProblemObjectExists, 412, "Precondition Failed", "`If-None-Match: *`: the object exists."},
	{ProblemObjectMissing, 412, "Precondition Failed", "`If-Match`: the object does not exist."},
	{ProblemPreviewExpired, 412, "Precondition Failed", "`Preview-Token`: the preview does not exist or has expired. Plan again."},
	{ProblemPreviewMismatch, 412, "Precondition Failed", "`Preview-Token`: the preview was made for another object or another spec. Give both the same."},
	{ProblemFleetChanged, 412, "Precondition Failed", "`Preview-Token`: the decision is another one than the preview showed, because the fleet has changed. Plan again."},
	{ProblemTooLarge, 413, "Request Entity Too Large", "The body, the object or the preview is larger than the server takes."},
	{ProblemUnsupportedMediaType, 415, "Unsupported Media Type", "The body must be JSON in UTF-8, not compressed."},
	{ProblemInvalid, 422, "Unprocessable Entity", "Fields break rules. `errors` has all of them, each with its `field` and a `message`."},
	{ProblemTooManyRequests, 429, "Too Many Requests", "The server has as many simulations under way, or previews to keep, as it takes. Repeat the request after `Retry-After`."},
	{ProblemTooManyLogins, 429, "Too Many Requests", "Too many requests with wrong tokens came from this address. Repeat the request after `Retry-After`."},
	{ProblemClientClosed, 499, "Client Closed Request", "The client went away before the answer; it stands in logs only."},
	{ProblemInternal, 500, "Internal Server Error", "The server failed. Its log says why, under the request's id."},
	{ProblemDamaged, 500, "Internal Server Error", "The object is damaged in the store, by a faulty disk perhaps. Write it again with `PUT` or delete it, or restore a backup; decisions that rest on it stay as they are until then."},
	{ProblemCloudUnreachable, 502, "Bad Gateway", "The OpenStack that was asked refused, or gave no answer that can be used."},
	{ProblemUnavailable, 503, "Service Unavailable", "The server is starting, or its store does not answer. Nothing was changed; repeat the request after `Retry-After`."},
	{ProblemUnconfirmed, 503, "Service Unavailable", "The store did not confirm the write, and it may have happened. Read the object before the request is repeated."},
	{ProblemStoreFull, 507, "Insufficient Storage", "The store is full. Nothing was written; reads go on."},
}

// LookupProblem describes a type; ok is false for one that this version does not
// know.
func LookupProblem(t ProblemType) (info ProblemInfo, ok bool) {
	i := slices.IndexFunc(ProblemTypes, func(info ProblemInfo) bool { return info.Type == t })
	if i < 0 {
		return ProblemInfo{}, false
	}
	return ProblemTypes[i], true
}

// ProblemOfStatus is the general type of problem with a status: malformed or
// internal where a status has none.
func ProblemOfStatus(status int) ProblemType {
	for _, info := range ProblemTypes {
		if info.Status == status {
			return info.Type
		}
	}
	if status < 500 {
		return ProblemMalformed
	}
	return ProblemInternal
}

// RefusesPreview reports that a write was refused because of its preview.
func (t ProblemType) RefusesPreview() bool {
	return t == ProblemPreviewExpired || t == ProblemPreviewMismatch || t == ProblemFleetChanged
}

// IsCollision reports that somebody else's change stands in the way of a write.
func (t ProblemType) IsCollision() bool {
	return t == ProblemConflict || t == ProblemObjectChanged || t == ProblemObjectExists || t == ProblemObjectMissing
}
