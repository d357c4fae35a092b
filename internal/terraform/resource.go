// Package terraform is the engine of the provider: what all resources and data sources have in
// common. A Resource or a DataSource describes one kind of object; this package generates its
// schema, converts values between Terraform and the API, and plans, creates, reads, updates and
// deletes objects.
package terraform

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// defaultTimeout is the timeout of an operation unless the timeouts attribute sets one.
const defaultTimeout = 2 * time.Minute

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

// Resource is the resource of one kind of object. All kinds are handled in the same way.
type Resource struct {
	Kind        api.Kind
	Description string
	// Attributes are those of the spec, and additional ones of the kind.
	Attributes map[string]schema.Attribute
	// Local names the attributes that only Terraform has.
	Local map[string]bool
	// Significant names the attributes for which an empty value differs from null.
	Significant []string
	// Decision returns the computed attributes that come from the object's status, as JSON; nil =
	// none.
	Decision func(api.Object) map[string]any
	// ConcernedBy reports whether the decision of an object may depend on objects of a kind.
	ConcernedBy func(object api.Object, kind api.Kind) bool
	// Derived says that the decision summarizes those of other objects: a simulation shows it only
	// for objects that it is given.
	Derived bool
	// Previewed returns the same attributes according to a preview; nil = no previews.
	Previewed func(*api.Preview) map[string]any
	// Inputs names the attributes that the decision depends on.
	Inputs []string
	// PlanDivision plans the attributes of the decision that depend on further attributes, after
	// the rest of the decision. replanned says that the rest may change; nil = there are none.
	PlanDivision func(plan, before map[string]tftypes.Value, replanned bool) error
	// Choice is what the server chooses, and an apply waits for; nil = nothing.
	Choice *Choice
	// Dependents is the kind of objects that belong to these and that the server deletes with them.
	// If an object is replaced, they are restored. "" = none.
	Dependents api.Kind
	// Unavailable is the warning about an object that was written but is not available yet, such as
	// "No value of %s"; "" = none.
	Unavailable string
	// Unsettled reports attributes that cannot be validated yet; nil = none.
	Unsettled Unsettled
	// Report reports problems that the server's response shows for an object that was just written;
	// nil = only conditions are reported.
	Report func(api.Object, *diag.Diagnostics)
	// Unsatisfied says what is missing of what an object requests, or returns ""; nil = use the
	// conditions of its choice.
	Unsatisfied func(api.Object) string
	// Warn warns about a valid configuration that is probably a mistake; nil = none.
	Warn func(config map[string]tftypes.Value, diags *diag.Diagnostics)

	session *Session
}

// DecisionWait is the wait for the decision of an object that was written.
type DecisionWait struct {
	Object  api.Object
	Plan    tftypes.Value
	Created bool
	Limit   time.Duration
	// unasked says that the plan asks for no other decision: other writes of the run move it.
	unasked bool
	// mark is the position of the operation among the changes of the run.
	mark int
}

// New returns the resource for one request.
func (r *Resource) New() resource.Resource {
	request := *r
	return &request
}

// Metadata implements resource.Resource.
func (r *Resource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typePrefix + string(r.Kind)
}

// Configure implements resource.ResourceWithConfigure.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.session = SessionOf(req.ProviderData, &resp.Diagnostics)
}

// Schema implements resource.Resource.
func (r *Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := maps.Clone(r.Attributes)
	maps.Copy(attributes, MetadataAttributes(r.scope()))
	attributes["timeouts"] = timeoutsAttribute(ctx)
	checkAttributes(ctx, typePrefix+string(r.Kind), attributes, &resp.Diagnostics)
	resp.Schema = schema.Schema{MarkdownDescription: r.Description, Attributes: attributes}
}

func timeoutsAttribute(ctx context.Context) schema.Attribute {
	limits := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Read: true, Update: true, Delete: true,
		CreateDescription: timeoutDescription, ReadDescription: timeoutDescription,
		UpdateDescription: timeoutDescription, DeleteDescription: timeoutDescription,
	})
	if nested, ok := limits.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "Time limits for the operations on this object."
		limits = nested
	}
	return limits
}

// timeLimitValidator returns the validator of timeouts.
func timeLimitValidator() validator.String {
	limits, _ := timeoutsAttribute(context.Background()).(schema.SingleNestedAttribute)
	limit, _ := limits.Attributes["create"].(schema.StringAttribute)
	return limit.Validators[0]
}

const timeoutDescription = "Time limit, such as `30s` or `5m`. Defaults to `2m`."

func (r *Resource) scope() api.Scope {
	info, _ := api.LookupKind(r.Kind)
	return info.Scope
}

// Create implements resource.Resource.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	if !r.session.Connected(&resp.Diagnostics) {
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
	deleted := r.session.deletions.of(key)
	stored, err := r.put(ctx, object, opts)
	if exists(err, opts) && r.session.deletions.vacated(ctx, key, deleted) {
		stored, err = r.put(ctx, object, opts)
	}
	if err != nil && client.StatusOf(err) == 0 {
		// There was no response, and the context may be done. If the object was created, it must be
		// saved, or the next apply would conflict with it.
		if present, ok := r.session.written(ctx, object); ok {
			stored, err = present, nil
		}
	}
	if previewRefused(err, opts) {
		reportRefusedPreview(&resp.Diagnostics, key, err)
		return
	}
	if exists(err, opts) {
		_, same := r.session.written(ctx, object)
		alreadyExists(&resp.Diagnostics, typePrefix+string(r.Kind), key, same, r.session.causes.tell("exists"))
		return
	}
	if err != nil {
		r.failed(&resp.Diagnostics, "create "+key.String(), req.Plan.Raw.Type(), r.spelled(timedOut(ctx, err, "create", limit)))
		return
	}
	r.finish(ctx, outcome{
		wait:  DecisionWait{Object: stored, Plan: req.Plan.Raw, Created: true, Limit: limit, mark: mark},
		state: &resp.State, identity: resp.Identity, private: resp.Private, diags: &resp.Diagnostics,
	})
}

// Update implements resource.Resource.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	if !r.session.Connected(&resp.Diagnostics) {
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
		TakeAway: r.takenSecrets(AttributesOf(req.Plan.Raw), AttributesOf(req.Config.Raw), AttributesOf(req.State.Raw), true),
	}
	stored, err := r.replace(ctx, object, seen, opts)
	if previewRefused(err, opts) {
		reportRefusedPreview(&resp.Diagnostics, key, err)
		return
	}
	if err != nil {
		r.failed(&resp.Diagnostics, "update "+key.String(), req.Plan.Raw.Type(), r.spelled(timedOut(ctx, err, "update", limit)))
		return
	}
	r.finish(ctx, outcome{
		wait: DecisionWait{
			Object: stored, Plan: req.Plan.Raw, Limit: limit, mark: mark,
			unasked: seen != nil && seen.Moves && !seen.Unfinished && !r.replanned(AttributesOf(req.Plan.Raw), AttributesOf(req.State.Raw)),
		},
		state: &resp.State, identity: resp.Identity, private: resp.Private, diags: &resp.Diagnostics,
	})
}

// Read implements resource.Resource.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	if !r.session.Connected(&resp.Diagnostics) {
		return
	}
	prior := AttributesOf(req.State.Raw)
	key := r.key(prior)
	// Before anything else: a state without identity, from an older Terraform, must get one even if
	// the object is gone.
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
	values, err := r.values(ctx, req.State.Raw.Type(), object, prior)
	if err != nil {
		diagnose(&resp.Diagnostics, "read "+key.String(), req.State.Raw.Type(), err)
		return
	}
	resp.State.Raw = tftypes.NewValue(req.State.Raw.Type(), values)
	unfinished := readVersion(ctx, req.Private, &resp.Diagnostics).unfinished() && !r.reached(object, req.State.Raw)
	exact := r.session.fingerprint(r.Kind, req.State.Raw.Type())
	now := versionOf(object, unfinished, exact)
	now.Moves = r.moves(ctx, object, &resp.Diagnostics)
	keepVersion(ctx, resp.Private, now, sameAttributes(values, prior), &resp.Diagnostics)
	end()
	if r.session.warn {
		warnUnsatisfied(r.session.unsatisfied.add(ctx, key, r.missing(object)), &resp.Diagnostics)
	}
}

// Delete implements resource.Resource.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	if !r.session.Connected(&resp.Diagnostics) {
		return
	}
	limit := r.timeout(ctx, timeouts.Value.Delete, req.State.GetAttribute, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := r.key(AttributesOf(req.State.Raw))
	if err := r.delete(ctx, key); err != nil {
		r.failed(&resp.Diagnostics, "delete "+key.String(), req.State.Raw.Type(), timedOut(ctx, err, "delete", limit))
	}
}

// outcome is where a create or update stores its result.
type outcome struct {
	wait     DecisionWait
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateData
	diags    *diag.Diagnostics
}

// finish saves the state of an object that was just written, and saves it again with its decision.
func (r *Resource) finish(ctx context.Context, o outcome) {
	plan := AttributesOf(o.wait.Plan)
	save := func(object api.Object, unfinished bool) {
		server, err := r.values(ctx, o.wait.Plan.Type(), object, plan)
		if err != nil {
			diagnose(o.diags, "read "+api.KeyOf(object).String(), o.wait.Plan.Type(), err)
			return
		}
		settled := settle(plan, server)
		o.state.Raw = tftypes.NewValue(o.wait.Plan.Type(), settled)
		exact := ""
		if read, err := r.values(ctx, o.wait.Plan.Type(), object, settled); err == nil && sameAttributes(read, settled) {
			exact = r.session.fingerprint(r.Kind, o.wait.Plan.Type())
		}
		keepVersion(ctx, o.private, versionOf(object, unfinished, exact), false, o.diags)
	}
	setIdentity(ctx, o.identity, r.scope(), api.KeyOf(o.wait.Object), o.diags)
	// Save what exists before waiting for anything.
	save(o.wait.Object, false)
	if o.diags.HasError() {
		return
	}
	decided := o.wait.Object
	if r.Choice != nil {
		found, diags := r.await(ctx, o.wait)
		o.diags.Append(diags...)
		if found != nil {
			decided = found
		}
		// If the wait failed, the next plan repeats it. Terraform itself plans a failed create
		// again.
		if failed := diags.HasError(); failed || found != nil {
			save(decided, failed)
		}
	}
	if r.Report != nil {
		r.Report(decided, o.diags)
	}
	r.warnOfConditions(o.diags, decided)
}
