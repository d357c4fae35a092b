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

// Walk visits the attributes of a resource or of a data source.
func Walk[A schema.Attribute](attributes map[string]A, at []string, visit func(at []string, attribute schema.Attribute)) {
	walk(attributes, at, visit)
}

// Answered is the generation that the choice for an object answers.
func (r *Resource) Answered(object api.Object) int64 {
	state, _ := r.Choice.state(object)
	return state.Observed
}

// Await waits for the choice of an object.
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

// IdentityType is the type of the identities of a resource.
func (r *Resource) IdentityType() tftypes.Type {
	var resp resource.IdentitySchemaResponse
	r.IdentitySchema(context.Background(), resource.IdentitySchemaRequest{}, &resp)
	return resp.IdentitySchema.Type().TerraformType(context.Background())
}

// Direct says why a resource is not answered without the framework, nil = it is.
func (s *Server) Direct(kind api.Kind) error {
	_, err := s.resources[typePrefix+string(kind)]()
	return err
}

// Valid reports that the attributes of a configuration are valid one by one, as far as
// the server itself says.
func (s *Server) Valid(kind api.Kind, config tftypes.Value, writeOnly bool) bool {
	return valid(context.Background(), s.described(typePrefix+string(kind)).rules, AttributesOf(config), writeOnly)
}

// ReadsDirectly reports a read that is answered without the framework.
func (s *Server) ReadsDirectly(req *tfprotov6.ReadResourceRequest) bool {
	return s.configured(req.TypeName).read(context.Background(), req) != nil
}

// List makes a list of these objects, which are all that it has.
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

// Exact puts the fingerprint of this provider in the place of EXACT in private state.
func (s *Server) Exact(kind api.Kind, t tftypes.Type, private []byte) []byte {
	var data map[string][]byte
	if json.Unmarshal(private, &data) != nil {
		return nil
	}
	data[versionKey] = bytes.ReplaceAll(data[versionKey], []byte("EXACT"), []byte(s.session().fingerprint(kind, t)))
	private, _ = json.Marshal(data) // cannot fail: it is bytes by name
	return private
}

// OwnTraits are the fields that Terraform adds something to.
func OwnTraits() []string { return slices.Collect(maps.Keys(ownTraits)) }
