package terraform

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// What the tests over the provider's own resources look at, which this package
// cannot import itself.

// The parts of the codec.
type ConfigDocument = configDocument

var (
	AttributePath   = attributePath
	DefaultOf       = defaultOf
	Diagnose        = diagnose
	ElementsOf      = elementsOf
	IsEmpty         = isEmpty
	KeepSpelling    = keepSpelling
	ParentAttribute = parentAttribute
	SecretNames     = secretNames
	SettleValue     = settleValue
	ShownPath       = shownPath
)

// The names of the attributes of a secret, and of what is waited for.
const (
	VersionSuffix   = versionSuffix
	StoredSuffix    = storedSuffix
	WaitDecided     = waitDecided
	WaitDistributed = waitDistributed
)

// Answered is the generation that the decision of an object answers.
func Answered(object api.Object) int64 {
	state, _ := decisionOf(object)
	return state.observed
}

func (d *configDocument) Read(v tftypes.Value, at path.Path) (any, error) { return d.read(v, at) }

func (r *Resource) Values(ctx context.Context, object api.Object, prior map[string]tftypes.Value) (map[string]tftypes.Value, error) {
	return r.values(ctx, object, prior)
}

func (r *Resource) Document(d *configDocument, value tftypes.Value) (map[string]any, error) {
	return r.document(d, value)
}

func (r *Resource) ParseImportID(id string) (api.Key, error) { return r.parseImportID(id) }

func (r *Resource) Scope() api.Scope { return r.scope() }
