package provider

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// defaultTimeout is how long an operation may take when the timeouts attribute
// does not say.
const defaultTimeout = 2 * time.Minute

var (
	_ resource.ResourceWithConfigure      = (*objectResource)(nil)
	_ resource.ResourceWithIdentity       = (*objectResource)(nil)
	_ resource.ResourceWithImportState    = (*objectResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*objectResource)(nil)
	_ resource.ResourceWithValidateConfig = (*objectResource)(nil)
)

// objectResource is the resource of one kind of object: all kinds are created,
// read, updated and deleted alike.
type objectResource struct {
	kind        api.Kind
	description string
	// attributes are those of the spec, and what the kind adds.
	attributes map[string]schema.Attribute
	// local names the attributes that only Terraform knows.
	local map[string]bool
	// significant names the attributes that say something even where they are empty,
	// so that an empty one is not as good as none.
	significant []string
	// dependent are the attributes whose default follows from another one.
	dependent dependentDefaults
	// decision are the computed attributes that come from the object's status,
	// as JSON; nil = none.
	decision func(api.Object) map[string]any
	// previewed are the same attributes as a preview says they will be; nil where
	// there are no previews.
	previewed func(*api.Preview) map[string]any
	// inputs names the attributes that the decision follows from.
	inputs []string
	// divide plans the attributes of the decision that follow from further ones, after
	// the rest of it. replanned says that the rest does not stay what it was; nil =
	// there are none.
	divide func(plan, before map[string]tftypes.Value, replanned bool) error
	// decide waits until the object that was written has its decision, which it
	// returns; nil = there is none to wait for.
	decide func(context.Context, *session, decisionWait) (api.Object, diag.Diagnostics)
	// unawaited reports a plan that wants its decision not to be waited for; nil =
	// there is none.
	unawaited func(plan tftypes.Value) bool
	// doubts warns of what a configuration may say and hardly means; nil = of nothing.
	doubts func(config map[string]tftypes.Value, diags *diag.Diagnostics)

	session *session
}

// decisionWait is a written object whose decision is awaited.
type decisionWait struct {
	object  api.Object
	plan    tftypes.Value
	created bool
	limit   time.Duration
	// mark is when the operation began, among the changes of the run.
	mark int
}

// Metadata implements resource.Resource.
func (r *objectResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typePrefix + string(r.kind)
}

// Configure implements resource.ResourceWithConfigure.
func (r *objectResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

// Schema implements resource.Resource.
func (r *objectResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := maps.Clone(r.attributes)
	maps.Copy(attributes, metadataAttributes(r.scope()))
	limits := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Read: true, Update: true, Delete: true,
		CreateDescription: timeoutDescription, ReadDescription: timeoutDescription,
		UpdateDescription: timeoutDescription, DeleteDescription: timeoutDescription,
	})
	if nested, ok := limits.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long each operation may take."
		limits = nested
	}
	attributes["timeouts"] = limits
	resp.Schema = schema.Schema{MarkdownDescription: r.description, Attributes: attributes}
}

const timeoutDescription = "Time limit, such as `30s` or `5m`. Default `2m`."

func (r *objectResource) scope() api.Scope {
	info, _ := api.LookupKind(r.kind)
	return info.Scope
}

// Create implements resource.Resource.
func (r *objectResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	if !r.session.connected(&resp.Diagnostics) {
		return
	}
	limit := r.timeout(ctx, timeouts.Value.Create, req.Plan.GetAttribute, &resp.Diagnostics)
	object := r.object(req.Config.Raw, req.Plan.Raw, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := api.KeyOf(object)
	mark := r.session.changes.mark()
	opts := client.PutOptions{
		Create: true, Wait: r.wait(req.Plan.Raw, limit), PreviewToken: r.previewTokenOf(req.Config.Raw, req.Plan.Raw, tftypes.Value{}),
	}
	stored, err := r.session.put(ctx, object, opts)
	if err != nil && client.StatusOf(err) == 0 {
		// No answer, and perhaps no time left: what was made all the same must not
		// be forgotten, or the next apply would find it in its way.
		if present, ok := r.session.written(ctx, object); ok {
			stored, err = present, nil
		}
	}
	if previewRefused(err, opts) {
		reportRefusedPreview(&resp.Diagnostics, key, err)
		return
	}
	if client.StatusOf(err) == http.StatusPreconditionFailed {
		alreadyExists(&resp.Diagnostics, typePrefix+string(r.kind), key)
		return
	}
	if err != nil {
		r.failed(&resp.Diagnostics, "create "+key.String(), req.Plan.Raw.Type(), r.spelled(req.Config.Raw, timedOut(ctx, err, "create", limit)))
		return
	}
	r.finish(ctx, outcome{
		wait:  decisionWait{object: stored, plan: req.Plan.Raw, created: true, limit: limit, mark: mark},
		state: &resp.State, identity: resp.Identity, private: resp.Private, diags: &resp.Diagnostics,
	})
}

// Update implements resource.Resource.
func (r *objectResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	if !r.session.connected(&resp.Diagnostics) {
		return
	}
	limit := r.timeout(ctx, timeouts.Value.Update, req.Plan.GetAttribute, &resp.Diagnostics)
	object := r.object(req.Config.Raw, req.Plan.Raw, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := api.KeyOf(object)
	setIdentity(ctx, resp.Identity, r.scope(), key, &resp.Diagnostics)
	seen := readVersion(ctx, req.Private, &resp.Diagnostics)
	mark := r.session.changes.mark()
	opts := client.PutOptions{
		Wait: r.wait(req.Plan.Raw, limit), PreviewToken: r.previewTokenOf(req.Config.Raw, req.Plan.Raw, req.State.Raw),
		TakeAway: r.takenSecrets(attributesOf(req.Plan.Raw), attributesOf(req.Config.Raw), attributesOf(req.State.Raw), true),
	}
	stored, err := r.replace(ctx, object, seen, opts)
	if previewRefused(err, opts) {
		reportRefusedPreview(&resp.Diagnostics, key, err)
		return
	}
	if err != nil {
		r.failed(&resp.Diagnostics, "update "+key.String(), req.Plan.Raw.Type(), r.spelled(req.Config.Raw, timedOut(ctx, err, "update", limit)))
		return
	}
	r.finish(ctx, outcome{
		wait:  decisionWait{object: stored, plan: req.Plan.Raw, limit: limit, mark: mark},
		state: &resp.State, identity: resp.Identity, private: resp.Private, diags: &resp.Diagnostics,
	})
}

// Read implements resource.Resource.
func (r *objectResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	if !r.session.connected(&resp.Diagnostics) {
		return
	}
	prior := attributesOf(req.State.Raw)
	key := r.key(prior)
	// First of all: a state without identity, from an older Terraform, must get
	// one even when the object turns out to be gone.
	setIdentity(ctx, resp.Identity, r.scope(), key, &resp.Diagnostics)
	limit := r.timeout(ctx, timeouts.Value.Read, req.State.GetAttribute, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	end := r.session.unsatisfied.begin()
	defer end()
	object, err := r.session.lists.get(ctx, key)
	if client.IsNotFound(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if r.session.lostBefore(err) {
		return
	}
	if err != nil {
		r.failed(&resp.Diagnostics, "read "+key.String(), req.State.Raw.Type(), timedOut(ctx, err, "read", limit))
		return
	}
	values, err := r.values(ctx, object, prior)
	if err != nil {
		diagnose(&resp.Diagnostics, "read "+key.String(), req.State.Raw.Type(), err)
		return
	}
	resp.State.Raw = tftypes.NewValue(req.State.Raw.Type(), values)
	unfinished := readVersion(ctx, req.Private, &resp.Diagnostics).unfinished() && !reached(object, req.State.Raw)
	keepVersion(ctx, resp.Private, object, unfinished, &resp.Diagnostics)
	end()
	if r.session.warn {
		warnUnsatisfied(r.session.unsatisfied.add(ctx, key, unsatisfiedSentence(object)), &resp.Diagnostics)
	}
}

// Delete implements resource.Resource.
func (r *objectResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	if !r.session.connected(&resp.Diagnostics) {
		return
	}
	limit := r.timeout(ctx, timeouts.Value.Delete, req.State.GetAttribute, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := r.key(attributesOf(req.State.Raw))
	if err := r.session.delete(ctx, key); err != nil {
		r.failed(&resp.Diagnostics, "delete "+key.String(), req.State.Raw.Type(), timedOut(ctx, err, "delete", limit))
	}
}

// outcome is where a create or an update leaves its result.
type outcome struct {
	wait     decisionWait
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateData
	diags    *diag.Diagnostics
}

// finish writes the state of an object that was just written, and again when
// its decision is there.
func (r *objectResource) finish(ctx context.Context, o outcome) {
	plan := attributesOf(o.wait.plan)
	save := func(object api.Object, unfinished bool) {
		server, err := r.values(ctx, object, plan)
		if err != nil {
			diagnose(o.diags, "read "+api.KeyOf(object).String(), o.wait.plan.Type(), err)
			return
		}
		o.state.Raw = tftypes.NewValue(o.wait.plan.Type(), settle(plan, server))
		keepVersion(ctx, o.private, object, unfinished, o.diags)
	}
	setIdentity(ctx, o.identity, r.scope(), api.KeyOf(o.wait.object), o.diags)
	// What exists is in state before anything is waited for.
	save(o.wait.object, false)
	if o.diags.HasError() {
		return
	}
	decided := o.wait.object
	if r.decide != nil {
		found, diags := r.decide(ctx, r.session, o.wait)
		o.diags.Append(diags...)
		if found != nil {
			decided = found
		}
		// What failed to come is asked for again by the next plan. A creation that failed
		// is planned again by Terraform itself.
		save(decided, diags.HasError())
	}
	warnOfConditions(o.diags, decided)
}
