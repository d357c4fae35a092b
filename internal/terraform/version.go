package terraform

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// version identifies what the user asked of an object at a moment, and what of it is
// in the state. It lives in the resource's private state: as an attribute it would be
// a difference with every decision.
type version struct {
	UID             string `json:"uid"`
	Generation      int64  `json:"generation"`
	ResourceVersion string `json:"resource_version"`
	// Unfinished says that an update was written and then failed, because what it
	// waits for did not come: it is planned again until it has.
	Unfinished bool `json:"unfinished,omitempty"`
	// Exact is the fingerprint of the provider that made the whole state from this
	// version of the object: as long as both stay, so does the state. "" = the state
	// has something that was planned, and the server spells differently.
	Exact string `json:"exact,omitempty"`
}

// encode is a version as private state has it: short, for Terraform writes the
// state of all resources after each.
func (v *version) encode() ([]byte, error) {
	return json.Marshal([]any{v.UID, v.Generation, v.ResourceVersion, v.Unfinished, v.Exact})
}

// decodeVersion reads a version, also as providers wrote it that made an object of
// it; nil where it is neither.
func decodeVersion(data []byte) *version {
	v := &version{}
	if json.Unmarshal(data, v) == nil {
		return v
	}
	fields := []any{&v.UID, &v.Generation, &v.ResourceVersion, &v.Unfinished, &v.Exact}
	if n := len(fields); json.Unmarshal(data, &fields) != nil || len(fields) != n {
		return nil
	}
	return v
}

const versionKey = "version"

// privateData is the private state of a resource.
type privateData interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func (v *version) sameIntent(object api.Object) bool {
	return v.UID == object.Meta().UID && v.Generation == object.Meta().Generation
}

// readVersion is the version the state was made from, nil when it has none.
func readVersion(ctx context.Context, private privateData, diags *diag.Diagnostics) *version {
	data, more := private.GetKey(ctx, versionKey)
	diags.Append(more...)
	if data == nil {
		return nil
	}
	return decodeVersion(data)
}

// unfinished reports an update that has to be planned again.
func (v *version) unfinished() bool { return v != nil && v.Unfinished }

// kept reports that a version stays in private state: one of the same intent does where
// the state does, because the server takes it as a precondition all the same, and a
// state that does not change is not written.
func (v *version) kept(now version, stateStays bool) bool {
	return stateStays && v != nil && v.UID == now.UID && v.Generation == now.Generation && v.Unfinished == now.Unfinished
}

// keepVersion remembers the version that a state was made from, unless the one that is
// remembered stays.
func keepVersion(ctx context.Context, private privateData, v version, stateStays bool, diags *diag.Diagnostics) {
	if readVersion(ctx, private, diags).kept(v, stateStays) {
		return
	}
	data, err := v.encode()
	if err != nil {
		diags.AddError("Cannot store the version of the object", err.Error())
		return
	}
	diags.Append(private.SetKey(ctx, versionKey, data)...)
}

// versionOf is the version of an object.
func versionOf(object api.Object, unfinished bool, exact string) version {
	meta := object.Meta()
	return version{UID: meta.UID, Generation: meta.Generation, ResourceVersion: meta.ResourceVersion, Unfinished: unfinished, Exact: exact}
}
