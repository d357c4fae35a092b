package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Server is the provider as Terraform talks to it. Where nothing changes, which is
// nearly always, it answers reads and plans itself: the framework takes a hundred
// times as long to find that out. Everything else goes to the framework, and what
// is answered here is what the framework would have answered.
type Server struct {
	tfprotov6.ProviderServer
	session   func() *Session
	resources map[string]func() (*steadyResource, error)
}

// NewServer returns the server of a provider. framework serves all of it; session
// is that of the configured provider, nil before.
func NewServer(framework tfprotov6.ProviderServer, resources []*Resource, session func() *Session) *Server {
	s := &Server{ProviderServer: framework, session: session, resources: map[string]func() (*steadyResource, error){}}
	for _, r := range resources {
		s.resources[typePrefix+string(r.Kind)] = sync.OnceValues(func() (*steadyResource, error) {
			return newSteadyResource(context.Background(), r)
		})
	}
	return s
}

// null is that value in MessagePack.
const null = 0xc0

// CallFunction implements tfprotov6.FunctionServer. OpenTofu sends a null argument as a
// value without any data, which the framework calls a bug of itself.
func (s *Server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	for i, argument := range req.Arguments {
		if argument == nil || len(argument.MsgPack) == 0 && len(argument.JSON) == 0 {
			req.Arguments[i] = &tfprotov6.DynamicValue{MsgPack: []byte{null}}
		}
	}
	return s.ProviderServer.CallFunction(ctx, req)
}

// PlanResourceChange implements tfprotov6.ResourceServer.
func (s *Server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	if r := s.steady(req.TypeName); r != nil {
		if resp := r.plan(ctx, req); resp != nil {
			return resp, nil
		}
	}
	return s.ProviderServer.PlanResourceChange(ctx, req)
}

// ReadResource implements tfprotov6.ResourceServer.
func (s *Server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	if r := s.steady(req.TypeName); r != nil {
		if resp := r.read(req); resp != nil {
			return resp, nil
		}
	}
	return s.ProviderServer.ReadResource(ctx, req)
}

// steady is a resource of the configured provider, nil where the framework has to
// answer.
func (s *Server) steady(typeName string) *steadyResource {
	session, described := s.session(), s.resources[typeName]
	if described == nil || session == nil || session.Pending() {
		return nil
	}
	shared, err := described()
	if err != nil {
		return nil
	}
	r := *shared
	configured := *shared.Resource
	configured.session = session
	r.Resource = &configured
	return &r
}

// steadyResource is a resource as long as nothing about it changes.
type steadyResource struct {
	*Resource
	valueType    tftypes.Object
	identityType tftypes.Object
	rules        []steadyRule
}

func newSteadyResource(ctx context.Context, r *Resource) (*steadyResource, error) {
	var described resource.SchemaResponse
	r.Schema(ctx, resource.SchemaRequest{}, &described)
	rules, err := steadyRules(ctx, described.Schema.Attributes)
	if err != nil {
		return nil, err
	}
	var identity resource.IdentitySchemaResponse
	r.IdentitySchema(ctx, resource.IdentitySchemaRequest{}, &identity)
	steady := &steadyResource{Resource: r, rules: rules}
	steady.valueType, _ = described.Schema.Type().TerraformType(ctx).(tftypes.Object)
	steady.identityType, _ = identity.IdentitySchema.Type().TerraformType(ctx).(tftypes.Object)
	return steady, nil
}

// plan answers a plan in which nothing changes, nil where something does, or there
// is something to say.
func (r *steadyResource) plan(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
	prior, proposed := req.PriorState, req.ProposedNewState
	if prior == nil || proposed == nil || req.Config == nil || len(prior.MsgPack) == 0 || !bytes.Equal(prior.MsgPack, proposed.MsgPack) {
		return nil
	}
	before, err := prior.Unmarshal(r.valueType)
	if err != nil || before.IsNull() {
		return nil
	}
	config, err := req.Config.Unmarshal(r.valueType)
	if err != nil || config.IsNull() {
		return nil
	}
	private, ok := readPrivate(req.PriorPrivate)
	if !ok {
		return nil
	}
	was, given := AttributesOf(before), AttributesOf(config)
	if !steady(r.rules, given, was) {
		return nil
	}
	var diags diag.Diagnostics
	plan := maps.Clone(was)
	replace, err := r.modify(ctx, modification{
		plan: plan, config: config, before: before, given: given, was: was, unfinished: private.unfinished(),
	}, &diags)
	if err != nil || replace || len(diags) > 0 || !sameAttributes(plan, was) {
		return nil
	}
	identity := req.PriorIdentity
	if identity == nil {
		if identity = encodeIdentity(r.identityType, nil); identity == nil {
			return nil
		}
	}
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: prior, PlannedPrivate: req.PriorPrivate, PlannedIdentity: identity}
}

// read answers the read of an object that a list shows as the state has it already,
// nil where it is not listed, or not so.
func (r *steadyResource) read(req *tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
	state := req.CurrentState
	private, ok := readPrivate(req.Private)
	if !ok || private == nil || private.Exact == "" || private.Unfinished || state == nil || len(state.MsgPack) == 0 {
		return nil
	}
	names := []string{"name"}
	if parent := parentAttribute(r.scope()); parent != "" {
		names = append(names, parent)
	}
	texts, err := topLevelTexts(state.MsgPack, names...)
	if err != nil {
		return nil
	}
	key := api.Key{Kind: r.Kind, Name: texts["name"], Namespace: texts[parentAttribute(r.scope())]}
	end := r.session.unsatisfied.begin()
	defer end()
	object := r.session.lists.peek(key)
	if object == nil || private.Exact != r.session.fingerprint(r.Kind, r.valueType) || !private.sameIntent(object) || private.ResourceVersion != object.Meta().ResourceVersion {
		return nil
	}
	if r.session.warn && r.missing(object) != "" {
		return nil
	}
	identity := map[string]tftypes.Value{"name": tftypes.NewValue(tftypes.String, key.Name)}
	if parent := parentAttribute(r.scope()); parent != "" {
		identity[parent] = tftypes.NewValue(tftypes.String, nil)
		if key.Namespace != "" {
			identity[parent] = tftypes.NewValue(tftypes.String, key.Namespace)
		}
	}
	encoded := encodeIdentity(r.identityType, identity)
	if encoded == nil || req.CurrentIdentity != nil && !sameIdentity(r.identityType, req.CurrentIdentity, identity) {
		return nil
	}
	return &tfprotov6.ReadResourceResponse{NewState: state, Private: req.Private, NewIdentity: encoded}
}

// encodeIdentity is an identity as the protocol has it; attributes nil = null.
func encodeIdentity(t tftypes.Object, attributes map[string]tftypes.Value) *tfprotov6.ResourceIdentityData {
	value := tftypes.NewValue(t, nil)
	if attributes != nil {
		value = tftypes.NewValue(t, attributes)
	}
	encoded, err := tfprotov6.NewDynamicValue(t, value)
	if err != nil {
		return nil
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: &encoded}
}

// sameIdentity reports that an identity has these attributes.
func sameIdentity(t tftypes.Object, identity *tfprotov6.ResourceIdentityData, attributes map[string]tftypes.Value) bool {
	if identity.IdentityData == nil {
		return false
	}
	value, err := identity.IdentityData.Unmarshal(t)
	return err == nil && sameAttributes(AttributesOf(value), attributes)
}

// readPrivate is the version that private state has as the framework encodes it, nil
// where there is none; ok is false where there is something else, too.
func readPrivate(private []byte) (v *version, ok bool) {
	if len(private) == 0 {
		return nil, true
	}
	var data map[string][]byte
	if json.Unmarshal(private, &data) != nil {
		return nil, false
	}
	if v = decodeVersion(data[versionKey]); v == nil || len(data) != 1 {
		return nil, false
	}
	return v, true
}
