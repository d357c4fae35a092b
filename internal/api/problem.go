package api

import (
	"slices"
)

// Problem is an error response (RFC 9457).
type Problem struct {
	Type   ProblemType `json:"type,omitempty" doc:"Type of the problem, for programs. The guide on errors lists all types."`
	Title  string      `json:"title" doc:"Short summary of the type."`
	Status int         `json:"status" doc:"HTTP status code."`
	Detail string      `json:"detail,omitempty" doc:"What went wrong in this case."`
	Errors FieldErrors `json:"errors,omitempty" doc:"Invalid fields."`
	// Message is set for GitOps controllers, which show it alone.
	Message string `json:"message,omitempty" doc:"All of it in one line. Only below /integrations/."`
}

// Error returns the problem as one line.
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

// ProblemType is the URI of a problem type. Programs should tell problems apart by it: the texts
// may change.
type ProblemType string

const problemPrefix = "urn:scheduler:problem:"

// Problem types. ProblemTypes describes each of them.
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
	ProblemNoAnswer             ProblemType = problemPrefix + "no-answer"
	ProblemStoreFull            ProblemType = problemPrefix + "store-full"
)

// ProblemInfo describes a problem type.
type ProblemInfo struct {
	Type   ProblemType
	Status int
	Title  string
	// Doc says when the problem occurs and what to do.
	Doc string
}

// ProblemTypes lists all problem types, ordered by status. The first one of each status is the
// general one. Server responses, the OpenAPI document and the guide on errors are generated from
// this table.
var ProblemTypes = []ProblemInfo{
	{ProblemMalformed, 400, "Bad Request", "The body is not JSON or was cut off, a header or parameter cannot be parsed, or a field breaks a rule of the Arktos API. Correct the request."},
	{ProblemBadContinue, 400, "Bad Request", "The `continue` token is invalid, or belongs to another list. Start the list again."},
	{ProblemUnauthenticated, 401, "Unauthorized", "The request has no bearer token, or one that the server does not know."},
	{ProblemForbidden, 403, "Forbidden", "The token's role or namespaces do not permit the request, or the object refers to one that the token must not read; then `errors` lists the fields. The response is the same whether or not the object exists."},
	{ProblemCrossOrigin, 403, "Forbidden", "A browser sent the request from a page of another site. Such requests cannot change anything."},
	{ProblemNotFound, 404, "Not Found", "The object does not exist."},
	{ProblemUnknownPath, 404, "Not Found", "The API has no such path."},
	{ProblemPreviewNotFound, 404, "Not Found", "The preview does not exist or has expired. Create another one."},
	{ProblemMethodNotAllowed, 405, "Method Not Allowed", "The path does not support this method. The header `Allow` lists those that it supports."},
	{ProblemNotAcceptable, 406, "Not Acceptable", "The server cannot produce any media type that `Accept` lists."},
	{ProblemRequestTimeout, 408, "Request Timeout", "The body did not arrive in time."},
	{ProblemConflict, 409, "Conflict", "Something else changed the object at the same time. Read it again and repeat the request."},
	{ProblemAlreadyExists, 409, "Conflict", "An object with this name already exists, and the request may only create one."},
	{ProblemSiteTaken, 409, "Conflict", "Another cluster already represents this region and availability zone."},
	{ProblemNoRoom, 409, "Conflict", "The sites do not have enough room for the allocation. Nothing was allocated."},
	{ProblemReportOutOfOrder, 409, "Conflict", "The collector's report does not follow the last one. Send a full report."},
	{ProblemSpotDisabled, 409, "Conflict", "The cluster does not split workloads between on-demand and spot nodes: `spot` is not enabled, or there is no kubeconfig."},
	{ProblemNoCredentials, 409, "Conflict", "The cloud has no credentials with which the server could query it."},
	{ProblemRevisionGone, 410, "Gone", "The revision at which the list or watch should continue is no longer available. Start again."},
	{ProblemObjectChanged, 412, "Precondition Failed", "`If-Match`: the object has changed since the version in the request."},
	{ProblemObjectExists, 412, "Precondition Failed", "`If-None-Match: *`: the object exists."},
	{ProblemObjectMissing, 412, "Precondition Failed", "`If-Match`: the object does not exist."},
	{ProblemPreviewExpired, 412, "Precondition Failed", "`Preview-Token`: the preview does not exist or has expired. Plan again."},
	{ProblemPreviewMismatch, 412, "Precondition Failed", "`Preview-Token`: the preview was made for another object or spec. Use the same for both."},
	{ProblemFleetChanged, 412, "Precondition Failed", "`Preview-Token`: the fleet has changed, and the decision would now differ from the preview. Plan again."},
	{ProblemTooLarge, 413, "Request Entity Too Large", "The body, the object or the preview is larger than the server accepts."},
	{ProblemUnsupportedMediaType, 415, "Unsupported Media Type", "The body must be uncompressed JSON in UTF-8."},
	{ProblemInvalid, 422, "Unprocessable Entity", "Some fields are invalid. `errors` lists all of them, each with its `field` and a `message`."},
	{ProblemTooManyRequests, 429, "Too Many Requests", "The server has reached its limit of running simulations or stored previews. Repeat the request after `Retry-After`."},
	{ProblemTooManyLogins, 429, "Too Many Requests", "This address sent too many requests with invalid tokens. Repeat the request after `Retry-After`."},
	{ProblemClientClosed, 499, "Client Closed Request", "The client disconnected before the response. This appears only in logs."},
	{ProblemInternal, 500, "Internal Server Error", "The server failed. Its log has the reason under the ID of the request."},
	{ProblemDamaged, 500, "Internal Server Error", "The stored object is corrupted, probably by a faulty disk. Write it again with `PUT`, delete it, or restore a backup. Until then, decisions that depend on it do not change."},
	{ProblemCloudUnreachable, 502, "Bad Gateway", "The OpenStack cloud rejected the request, or did not return a usable response."},
	{ProblemUnavailable, 503, "Service Unavailable", "The server is starting, or its store does not respond. Nothing was changed. Repeat the request after `Retry-After`."},
	{ProblemUnconfirmed, 503, "Service Unavailable", "The store did not confirm the write, which may have happened. Read the object before you repeat the request."},
	{ProblemNoAnswer, 503, "Service Unavailable", "A GitOps controller asked for the clusters of a decision, and would delete what it has made because of the answer: no cluster fits, the decision has not been made yet, or what the server knows is too old. The controller keeps what it has, and asks again. `allow_empty` permits an answer without clusters when none fits."},
	{ProblemStoreFull, 507, "Insufficient Storage", "The store is full. Nothing was written. Reads continue."},
}

// LookupProblem returns the description of a problem type. ok is false if this version does not
// know it.
func LookupProblem(t ProblemType) (info ProblemInfo, ok bool) {
	i := slices.IndexFunc(ProblemTypes, func(info ProblemInfo) bool { return info.Type == t })
	if i < 0 {
		return ProblemInfo{}, false
	}
	return ProblemTypes[i], true
}

// ProblemOfStatus returns the general problem type of a status, or malformed or internal if the
// status has none.
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

// RefusesPreview reports whether a write was rejected because of its preview.
func (t ProblemType) RefusesPreview() bool {
	return t == ProblemPreviewExpired || t == ProblemPreviewMismatch || t == ProblemFleetChanged
}

// IsCollision reports whether a write was rejected because of a concurrent change.
func (t ProblemType) IsCollision() bool {
	return t == ProblemConflict || t == ProblemObjectChanged || t == ProblemObjectExists || t == ProblemObjectMissing
}
