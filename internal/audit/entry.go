package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Stage is the point of a request at which a line was written.
type Stage string

// Stages.
const (
	// StageStarted is the first line of a server, without a request.
	StageStarted Stage = "started"
	// StageReceived comes before the write, and only if the log is required: what it announces
	// may not have happened.
	StageReceived Stage = "received"
	// StageResumed is the first line after lines that could not be written.
	StageResumed Stage = "resumed"
	// StageDone says what the request has done, or why it was refused.
	StageDone Stage = "done"
)

// Result is how a request ended.
type Result string

// Results.
const (
	// ResultAccepted is for requests that did what they asked for. If nothing had to change,
	// Before and After are equal.
	ResultAccepted Result = "accepted"
	// ResultRefused is for requests that changed nothing because of the client: status 4xx.
	ResultRefused Result = "refused"
	// ResultFailed is for requests that the server could not complete: status 5xx. A write that
	// ended in a time limit may still have happened.
	ResultFailed Result = "failed"
)

// ResultOf returns the result for the status of a response.
func ResultOf(status int) Result {
	switch {
	case status >= 500:
		return ResultFailed
	case status >= 400:
		return ResultRefused
	}
	return ResultAccepted
}

// Entry is a line of the audit log.
type Entry struct {
	Time  time.Time `json:"time"` // UTC
	Stage Stage     `json:"stage"`
	// Server is the name of the server that wrote the line.
	Server string `json:"server,omitempty"`
	// Version is that of the server, in its first line.
	Version string `json:"version,omitempty"`
	// RequestID joins the lines of a request, and is in the server's log and in the response.
	RequestID string `json:"request_id,omitempty"`
	// TraceID is the OpenTelemetry trace that the request is a part of, if that is recorded.
	TraceID string `json:"trace_id,omitempty"`
	// Actor is who made the request. It is absent if nobody was authenticated.
	Actor *Actor `json:"actor,omitempty"`
	// Client is the IP address that the request came from.
	Client string `json:"client,omitempty"`
	// Forwarded says that another server passed the request on. That server has a line with the
	// address of the client.
	Forwarded bool   `json:"forwarded,omitempty"`
	Method    string `json:"method,omitempty"`
	// Route is the pattern of the path, without its parameters.
	Route string `json:"route,omitempty"`
	// Operation is the ID of the operation in the OpenAPI document.
	Operation string `json:"operation,omitempty"`
	// Object is what the request is about: an object of the API, or a "token" or "member". It is
	// absent if that is the whole server, or nothing that could exist.
	Object *api.Key `json:"object,omitempty"`
	// Status is that of the HTTP response.
	Status int    `json:"status,omitempty"`
	Result Result `json:"result,omitempty"`
	// Problem is the type of the error in the response, and Reason its text if access was denied.
	Problem string `json:"problem,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Before and After are the object before and after the write. An object that was created has
	// no Before, and one that was deleted no After.
	Before *Digest `json:"before,omitempty"`
	After  *Digest `json:"after,omitempty"`
	// Revision is the revision of the store that the write made.
	Revision int64 `json:"revision,omitempty"`
}

// Actor is who made a request.
type Actor struct {
	// Token is the ID of a token, or the issuer and the subject of a JSON Web Token. It is empty
	// if the server required no token.
	Token string `json:"token,omitempty"`
	// Role is that of the token, or that a binding of the configuration gives it; empty if none does.
	Role string `json:"role,omitempty"`
	// Namespaces are those that the role is limited to; none = all.
	Namespaces []string `json:"namespaces,omitempty"`
	// RoleBindings are the names of the role bindings that give it further roles.
	RoleBindings []string `json:"role_bindings,omitempty"`
}

// Digest identifies a version of an object.
type Digest struct {
	Generation int64 `json:"generation,omitempty"`
	// SHA256 is the digest of the object's name, labels and spec, without secrets: equal digests
	// mean equal specs.
	SHA256 string `json:"sha256,omitempty"`
	// Damaged says that the object could not be read, so that it has no digest.
	Damaged bool `json:"damaged,omitempty"`
}

// DigestOf returns the digest of a document, which must contain no secrets: short ones could be
// guessed from it.
func DigestOf(generation int64, document []byte) *Digest {
	sum := sha256.Sum256(document)
	return &Digest{Generation: generation, SHA256: hex.EncodeToString(sum[:])}
}
