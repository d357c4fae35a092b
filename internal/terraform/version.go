package terraform

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// version identifies a version of the user's part of an object, and how much of it is in the state.
// It is kept in private state, because as an attribute it would differ with every decision.
type version struct {
	UID             string
	Generation      int64
	ResourceVersion string
	// Unfinished says that an update was written but failed because what it waits for did not
	// happen: it is planned again until it does.
	Unfinished bool
	// Moves says that the run that read the object has planned writes that move its decision.
	Moves bool
	// Exact is the fingerprint of the provider that created the complete state from this version of
	// the object: as long as both are unchanged, so is the state. "" = the state contains planned
	// values that the server spells differently.
	Exact string
}

// encode returns the version for private state. It is compact, because Terraform rewrites the state
// of all resources after each operation.
func (v *version) encode() ([]byte, error) {
	return json.Marshal([]any{v.UID, v.Generation, v.ResourceVersion, v.Unfinished, v.Moves, v.Exact})
}

// decodeVersion decodes a version; nil if it is none.
func decodeVersion(data []byte) *version {
	v := &version{}
	fields := []any{&v.UID, &v.Generation, &v.ResourceVersion, &v.Unfinished, &v.Moves, &v.Exact}
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

// readVersion returns the version that the state was made from, or nil.
func readVersion(ctx context.Context, private privateData, diags *diag.Diagnostics) *version {
	data, more := private.GetKey(ctx, versionKey)
	diags.Append(more...)
	if data == nil {
		return nil
	}
	return decodeVersion(data)
}

// unfinished reports whether an update must be planned again.
func (v *version) unfinished() bool { return v != nil && v.Unfinished }

// replanned reports whether the decision must be planned again although its inputs stay.
func (v *version) replanned() bool { return v != nil && (v.Unfinished || v.Moves) }

// kept reports that a version stays in private state: one of the same intent does where
// the state does, because the server takes it as a precondition all the same, and a
// state that does not change is not written.
func (v *version) kept(now version, stateStays bool) bool {
	return stateStays && v != nil && v.UID == now.UID && v.Generation == now.Generation && v.Unfinished == now.Unfinished && v.Moves == now.Moves
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

// versionOf returns the version of an object.
func versionOf(object api.Object, unfinished bool, exact string) version {
	meta := object.Meta()
	return version{UID: meta.UID, Generation: meta.Generation, ResourceVersion: meta.ResourceVersion, Unfinished: unfinished, Exact: exact}
}
