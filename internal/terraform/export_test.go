package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// For tests that use the provider's resources, which this package cannot import.

// The parts of the codec.
type ConfigDocument = configDocument

var (
	AttributePath   = attributePath
	DefaultOf       = defaultOf
	Diagnose        = diagnose
	IsEmpty         = isEmpty
	KeepSpelling    = keepSpelling
	ParentAttribute = parentAttribute
	SecretNames     = secretNames
	SettleValue     = settleValue
	ShownPath       = shownPath
)

// The names of the attributes of a secret, and of the attributes to wait for.
const (
	VersionSuffix   = versionSuffix
	StoredSuffix    = storedSuffix
	WaitDecided     = waitDecided
	WaitDistributed = waitDistributed
)

// Walk visits the attributes of a resource or data source.
func Walk[A schema.Attribute](attributes map[string]A, at []string, visit func(at []string, attribute schema.Attribute)) {
	walk(attributes, at, visit)
}

// Answered returns the generation of the object that its decision answers.
func (r *Resource) Answered(object api.Object) int64 {
	state, _ := r.Choice.state(object)
	return state.Observed
}

// Await waits for the decision about an object.
func (r *Resource) Await(ctx context.Context, s *Session, w DecisionWait) (api.Object, diag.Diagnostics) {
	request := *r
	request.session = s
	return request.await(ctx, w)
}

func (d *configDocument) Read(v tftypes.Value, at path.Path) (any, error) { return d.read(v, at) }

func (r *Resource) Values(ctx context.Context, t tftypes.Type, object api.Object, prior map[string]tftypes.Value) (map[string]tftypes.Value, error) {
	return r.values(ctx, t, object, prior)
}

func (r *Resource) Document(d *configDocument, value tftypes.Value) (map[string]any, error) {
	return r.document(d, value)
}

func (r *Resource) ParseImportID(id string) (api.Key, error) { return r.parseImportID(id) }

func (r *Resource) Scope() api.Scope { return r.scope() }

// IdentityType returns the type of a resource's identities.
func (r *Resource) IdentityType() tftypes.Type {
	var resp resource.IdentitySchemaResponse
	r.IdentitySchema(context.Background(), resource.IdentitySchemaRequest{}, &resp)
	return resp.IdentitySchema.Type().TerraformType(context.Background())
}

// Direct returns the reason why a resource needs the framework, or nil if it does not.
func (s *Server) Direct(kind api.Kind) error {
	_, err := s.resources[typePrefix+string(kind)]()
	return err
}

// Valid reports whether each attribute of a configuration is valid, as far as the server itself can tell.
func (s *Server) Valid(kind api.Kind, config tftypes.Value, writeOnly bool) bool {
	return valid(context.Background(), s.described(typePrefix+string(kind)).rules, AttributesOf(config), writeOnly)
}

// ReadsDirectly reports whether a read is answered without the framework.
func (s *Server) ReadsDirectly(req *tfprotov6.ReadResourceRequest) bool {
	return s.configured(req.TypeName).read(context.Background(), req) != nil
}

// List makes these objects the complete contents of a list.
func (s *Server) List(objects ...api.Object) {
	lists := s.session().lists
	lists.forget()
	for _, object := range objects {
		key := api.KeyOf(object)
		snapshot := &listSnapshot{done: make(chan struct{}), fetched: lists.now(), lasts: time.Hour, objects: map[api.Key]api.Object{key: object}}
		close(snapshot.done)
		lists.kinds[key.Kind] = &kindReads{byNamespace: map[string]int{}, lists: map[string]*listSnapshot{key.Namespace: snapshot}}
	}
}

// Exact replaces EXACT in private state by this provider's fingerprint.
func (s *Server) Exact(kind api.Kind, t tftypes.Type, private []byte) []byte {
	var data map[string][]byte
	if json.Unmarshal(private, &data) != nil {
		return nil
	}
	data[versionKey] = bytes.ReplaceAll(data[versionKey], []byte("EXACT"), []byte(s.session().fingerprint(kind, t)))
	private, _ = json.Marshal(data) // cannot fail: it is a map of bytes
	return private
}

// OwnTraits returns the fields that have traits in Terraform.
func OwnTraits() []string { return slices.Collect(maps.Keys(ownTraits)) }

// Replanned reports whether a plan makes the decision of a state unknown.
func (r *Resource) Replanned(plan, before map[string]tftypes.Value) bool {
	return r.replanned(plan, before)
}
