package terraform

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// version identifies what the user asked of an object at a moment. It lives in
// the resource's private state: as an attribute it would be a difference with
// every decision.
type version struct {
	UID             string `json:"uid"`
	Generation      int64  `json:"generation"`
	ResourceVersion string `json:"resource_version"`
	// Unfinished says that an update was written and then failed, because what it
	// waits for did not come: it is planned again until it has.
	Unfinished bool `json:"unfinished,omitempty"`
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
	v := &version{}
	if data == nil || json.Unmarshal(data, v) != nil {
		return nil
	}
	return v
}

// unfinished reports an update that has to be planned again.
func (v *version) unfinished() bool { return v != nil && v.Unfinished }

// keepVersion remembers the version of an object, and whether its update is
// unfinished. A version of the same intent
// stays, because the server takes it as a precondition all the same, and a state
// that does not change is not written.
func keepVersion(ctx context.Context, private privateData, object api.Object, unfinished bool, diags *diag.Diagnostics) {
	if seen := readVersion(ctx, private, diags); seen != nil && seen.sameIntent(object) && seen.Unfinished == unfinished {
		return
	}
	meta := object.Meta()
	data, err := json.Marshal(version{UID: meta.UID, Generation: meta.Generation, ResourceVersion: meta.ResourceVersion, Unfinished: unfinished})
	if err != nil {
		diags.AddError("Cannot remember the version of the object", err.Error())
		return
	}
	diags.Append(private.SetKey(ctx, versionKey, data)...)
}
