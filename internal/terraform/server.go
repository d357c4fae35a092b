package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Server is the provider as Terraform talks to it. It answers itself what is asked of
// every resource in every run: whether a configuration is valid, which it nearly always
// is, what a state has, what has become of a listed object, and what is planned where
// nothing changes, or where nothing was before. The framework takes many times as long. Everything else goes to the framework,
// and what is answered here is what the framework would have answered.
type Server struct {
	tfprotov6.ProviderServer
	session   func() *Session
	resources map[string]func() (*directResource, error)
}

// NewServer returns the protocol server of a provider. framework handles all requests that are not
// answered directly; session returns the session of the configured provider, or nil.
func NewServer(framework tfprotov6.ProviderServer, resources []*Resource, session func() *Session) *Server {
	s := &Server{ProviderServer: framework, session: session, resources: map[string]func() (*directResource, error){}}
	for _, r := range resources {
		s.resources[typePrefix+string(r.Kind)] = sync.OnceValues(func() (*directResource, error) {
			return newDirectResource(context.Background(), r)
		})
	}
	return s
}

// null is the MessagePack encoding of nil.
const null = 0xc0

// CallFunction implements tfprotov6.FunctionServer. OpenTofu sends a null argument as a value
// without data, for which the framework reports an internal error.
func (s *Server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	for i, argument := range req.Arguments {
		if argument == nil || len(argument.MsgPack) == 0 && len(argument.JSON) == 0 {
			req.Arguments[i] = &tfprotov6.DynamicValue{MsgPack: []byte{null}}
		}
	}
	return s.ProviderServer.CallFunction(ctx, req)
}

// ValidateResourceConfig implements tfprotov6.ResourceServer.
func (s *Server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	if r := s.described(req.TypeName); r != nil {
		if resp := r.validate(ctx, req); resp != nil {
			return resp, nil
		}
	}
	return s.ProviderServer.ValidateResourceConfig(ctx, req)
}

// UpgradeResourceState implements tfprotov6.ResourceServer.
func (s *Server) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if r := s.described(req.TypeName); r != nil {
		if resp := r.upgrade(req); resp != nil {
			return resp, nil
		}
	}
	return s.ProviderServer.UpgradeResourceState(ctx, req)
}

// PlanResourceChange implements tfprotov6.ResourceServer.
func (s *Server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	if r := s.configured(req.TypeName); r != nil {
		if resp := r.plan(ctx, req); resp != nil {
			return resp, nil
		}
	}
	return s.ProviderServer.PlanResourceChange(ctx, req)
}

// ReadResource implements tfprotov6.ResourceServer.
func (s *Server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	if r := s.configured(req.TypeName); r != nil {
		if resp := r.read(ctx, req); resp != nil {
			return resp, nil
		}
	}
	return s.ProviderServer.ReadResource(ctx, req)
}

// described returns a resource for requests that do not need a configured provider, or nil if the
// framework must answer.
func (s *Server) described(typeName string) *directResource {
	described := s.resources[typeName]
	if described == nil {
		return nil
	}
	r, err := described()
	if err != nil {
		return nil // TestEveryResourceIsDirect
	}
	return r
}

// configured returns a resource of the configured provider, or nil if the framework must answer.
func (s *Server) configured(typeName string) *directResource {
	session, shared := s.session(), s.described(typeName)
	if shared == nil || session == nil || session.Pending() {
		return nil
	}
	r, configured := *shared, *shared.Resource
	configured.session = session
	r.Resource = &configured
	return &r
}

// directResource answers requests for a resource without the framework.
type directResource struct {
	*Resource
	schema       schema.Schema
	valueType    tftypes.Object
	identityType tftypes.Object
	rules        []attributeRule
}

func newDirectResource(ctx context.Context, r *Resource) (*directResource, error) {
	var described resource.SchemaResponse
	r.Schema(ctx, resource.SchemaRequest{}, &described)
	rules, err := attributeRules(ctx, described.Schema.Attributes)
	if err != nil {
		return nil, err
	}
	if len(described.Schema.Blocks) > 0 || described.Schema.DeprecationMessage != "" {
		return nil, errors.New("has blocks, or is deprecated")
	}
	var identity resource.IdentitySchemaResponse
	r.IdentitySchema(ctx, resource.IdentitySchemaRequest{}, &identity)
	direct := &directResource{Resource: r, schema: described.Schema, rules: rules}
	direct.valueType, _ = described.Schema.Type().TerraformType(ctx).(tftypes.Object)
	direct.identityType, _ = identity.IdentitySchema.Type().TerraformType(ctx).(tftypes.Object)
	return direct, nil
}

// validate answers that a configuration is valid. It returns nil if there may be diagnostics.
func (r *directResource) validate(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) *tfprotov6.ValidateResourceConfigResponse {
	if req.Config == nil {
		return nil
	}
	config, err := req.Config.Unmarshal(r.valueType)
	if err != nil || config.IsNull() || !config.IsKnown() {
		return nil
	}
	writeOnly := req.ClientCapabilities != nil && req.ClientCapabilities.WriteOnlyAttributesAllowed
	if !valid(ctx, r.rules, AttributesOf(config), writeOnly) {
		return nil
	}
	var resp resource.ValidateConfigResponse
	r.ValidateConfig(ctx, resource.ValidateConfigRequest{Config: tfsdk.Config{Raw: config, Schema: r.schema}}, &resp)
	if len(resp.Diagnostics) > 0 {
		return nil
	}
	return &tfprotov6.ValidateResourceConfigResponse{}
}

// plan answers the plan of an unchanged or new object. It returns nil if something changes or there
// may be diagnostics.
func (r *directResource) plan(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
	prior, proposed := req.PriorState, req.ProposedNewState
	if prior == nil || proposed == nil || req.Config == nil || len(prior.MsgPack) == 0 {
		return nil
	}
	if bytes.Equal(prior.MsgPack, []byte{null}) {
		return r.planCreation(ctx, req)
	}
	if bytes.Equal(prior.MsgPack, proposed.MsgPack) {
		return r.planNothing(ctx, req)
	}
	return nil
}

// planCreation answers the plan of a new object. It returns nil if there may be diagnostics.
func (r *directResource) planCreation(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
	proposed, err := req.ProposedNewState.Unmarshal(r.valueType)
	if err != nil || len(req.PriorPrivate) > 0 {
		return nil
	}
	config, err := req.Config.Unmarshal(r.valueType)
	if err != nil {
		return nil
	}
	plan, given := AttributesOf(proposed), AttributesOf(config)
	if plan == nil || given == nil || !create(ctx, r.rules, plan, given) {
		return nil
	}
	var diags diag.Diagnostics
	replace, err := r.modify(ctx, modification{plan: plan, config: config, before: tftypes.NewValue(r.valueType, nil), given: given}, &diags)
	if err != nil || replace || len(diags) > 0 {
		return nil
	}
	r.planWrite(plan, nil)
	planned, err := tfprotov6.NewDynamicValue(r.valueType, tftypes.NewValue(r.valueType, plan))
	if err != nil {
		return nil
	}
	return r.planned(req, &planned)
}

// planned returns the response to a plan with the given state and everything else unchanged.
func (r *directResource) planned(req *tfprotov6.PlanResourceChangeRequest, state *tfprotov6.DynamicValue) *tfprotov6.PlanResourceChangeResponse {
	identity := req.PriorIdentity
	if identity == nil {
		if identity = encodeIdentity(r.identityType, nil); identity == nil {
			return nil
		}
	}
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: state, PlannedPrivate: req.PriorPrivate, PlannedIdentity: identity}
}

// planNothing answers the plan of an unchanged object. It returns nil if something changes or there
// may be diagnostics.
func (r *directResource) planNothing(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
	before, err := req.PriorState.Unmarshal(r.valueType)
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
		plan: plan, config: config, before: before, given: given, was: was, replanned: private.replanned(),
	}, &diags)
	if err != nil || replace || len(diags) > 0 || !sameAttributes(plan, was) {
		return nil
	}
	return r.planned(req, req.PriorState)
}

// read answers the read of an object that a list shows, nil where it is not listed, or
// there is something to say.
func (r *directResource) read(ctx context.Context, req *tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
	state := req.CurrentState
	private, ok := readPrivate(req.Private)
	if !ok || private.unfinished() || state == nil || len(state.MsgPack) == 0 {
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
	if object == nil || r.session.warn && r.missing(object) != "" {
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
	resp := &tfprotov6.ReadResourceResponse{NewState: state, Private: req.Private, NewIdentity: encoded}
	var diags diag.Diagnostics
	now := versionOf(object, false, r.session.fingerprint(r.Kind, r.valueType))
	if now.Moves = r.moves(ctx, object, &diags); len(diags) > 0 {
		return nil
	}
	if private != nil && *private == now {
		return resp
	}
	return r.reread(ctx, resp, private, now, object)
}

// reread answers the read of an object that may have changed since the state was made
// from it; seen is that version of it, nil = not known.
func (r *directResource) reread(ctx context.Context, resp *tfprotov6.ReadResourceResponse, seen *version, now version, object api.Object) *tfprotov6.ReadResourceResponse {
	before, err := resp.NewState.Unmarshal(r.valueType)
	prior := AttributesOf(before)
	if err != nil || prior == nil || !r.plain(prior) {
		return nil
	}
	values, err := r.values(ctx, r.valueType, object, prior)
	if err != nil {
		return nil
	}
	stays := sameAttributes(values, prior)
	if !stays {
		state, err := tfprotov6.NewDynamicValue(r.valueType, tftypes.NewValue(r.valueType, values))
		if err != nil {
			return nil
		}
		resp.NewState = &state
	}
	if seen.kept(now, stays) {
		return resp
	}
	if resp.Private, err = writePrivate(now); err != nil {
		return nil
	}
	return resp
}

// plain reports a state in which nothing is left that does not belong there: neither a
// write-only value that an API does not know, nor a time limit that is none.
func (r *directResource) plain(state map[string]tftypes.Value) bool {
	for i := range r.rules {
		if rule := &r.rules[i]; rule.writeOnly && r.Local[rule.name] && !state[rule.name].IsNull() {
			return false
		}
	}
	limit := TextOf(AttributesOf(state["timeouts"])["read"])
	_, err := time.ParseDuration(limit)
	return limit == "" || err == nil
}

// encodeIdentity returns an identity in protocol form; attributes nil = null.
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

// sameIdentity reports whether an identity has the given attributes.
func sameIdentity(t tftypes.Object, identity *tfprotov6.ResourceIdentityData, attributes map[string]tftypes.Value) bool {
	if identity.IdentityData == nil {
		return false
	}
	value, err := identity.IdentityData.Unmarshal(t)
	return err == nil && sameAttributes(AttributesOf(value), attributes)
}

// readPrivate returns the version in private state as the framework encodes it, or nil if there is
// none. ok is false if the private state contains anything else.
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

// writePrivate is private state with nothing but a version, as the framework encodes it.
func writePrivate(v version) ([]byte, error) {
	data, err := v.encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string][]byte{versionKey: data})
}
