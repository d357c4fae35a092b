package terraform

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// secretPlan is the plan for one secret.
type secretPlan struct {
	name  string
	field string // in the API: spec.kubernetes.kubeconfig
	at    path.Path
	isMap bool
	// given is the configured value, and before is what the server had: null if the state does
	// not say it.
	given, before tftypes.Value
	// raised says that the version changes.
	raised bool
	// planned is what the plan says the server will have.
	planned tftypes.Value
}

// visitSecrets calls visit for every secret of a plan whose block is present, and stores the result
// in the plan.
func (r *Resource) visitSecrets(plan, config, before map[string]tftypes.Value, visit func(secretPlan) tftypes.Value) {
	secrets := r.secrets()
	for i := range secrets {
		secret := &secrets[i]
		given, was := secret.valuesIn(config), secret.valuesIn(before)
		change(plan, secret.block, func(plan map[string]tftypes.Value) {
			name := secret.name
			s := secretPlan{
				name: name, field: secret.field(), at: secret.at(WriteOnlySuffix), isMap: secret.isMap,
				given: given[name+WriteOnlySuffix], planned: plan[name+storedSuffix],
			}
			s.before = emptyStored(s.planned.Type())
			if was != nil {
				s.before = was[name+storedSuffix]
				was, is := was[name+versionSuffix], plan[name+versionSuffix]
				s.raised = !was.IsNull() && is.IsKnown() && !is.IsNull() && !is.Equal(was)
			}
			plan[name+storedSuffix] = visit(s)
		})
	}
}

// change modifies the attributes of a nested object, if it is present.
func change(attributes map[string]tftypes.Value, block []string, do func(map[string]tftypes.Value)) {
	if len(block) == 0 {
		do(attributes)
		return
	}
	object := attributes[block[0]]
	if inner := maps.Clone(AttributesOf(object)); inner != nil {
		change(inner, block[1:], do)
		attributes[block[0]] = tftypes.NewValue(object.Type(), inner)
	}
}

// emptyStored returns the value that says that the server has no secret.
func emptyStored(t tftypes.Type) tftypes.Value {
	if t.Is(tftypes.Bool) {
		return tftypes.NewValue(t, false)
	}
	return tftypes.NewValue(t, []tftypes.Value{})
}

// emptied reports whether the secret is removed: only an empty value does that.
func (s *secretPlan) emptied() bool { return s.given.IsKnown() && isEmpty(s.given) }

// withoutValue says what is right instead of a new version of null, which a look-up that failed
// leaves.
func (s *secretPlan) withoutValue() string {
	empty := `""`
	if s.isMap {
		empty = "{}"
	}
	return fmt.Sprintf("%s: must not be null when %s changes: set the new value, set %s to remove the stored one, or keep the version",
		s.at, s.name+versionSuffix, empty)
}

// after returns what the server will have when the plan is applied.
func (s *secretPlan) after() tftypes.Value {
	t := s.planned.Type()
	switch {
	case !s.given.IsFullyKnown():
		return tftypes.NewValue(t, tftypes.UnknownValue)
	case s.emptied():
		return emptyStored(t)
	case s.given.IsNull():
		return s.before
	case !s.isMap:
		return tftypes.NewValue(t, true)
	}
	var elements map[string]tftypes.Value
	_ = s.given.As(&elements) // cannot fail for a map
	names := []tftypes.Value{}
	for _, name := range slices.Sorted(maps.Keys(elements)) {
		if elements[name].IsNull() || TextOf(elements[name]) != "" {
			names = append(names, tftypes.NewValue(tftypes.String, name))
		}
	}
	return tftypes.NewValue(t, names)
}

// lost returns the names of the secrets that the server will no longer have; "" for a secret
// without a name.
func (s *secretPlan) lost(after tftypes.Value) []string {
	if !after.IsFullyKnown() || s.before.IsNull() || s.before.Equal(after) {
		return nil
	}
	if !s.isMap {
		if s.before.Equal(emptyStored(s.before.Type())) {
			return nil
		}
		return []string{""}
	}
	var names []string
	still := ElementsOf(after)
	for _, name := range ElementsOf(s.before) {
		if !slices.ContainsFunc(still, name.Equal) {
			names = append(names, TextOf(name))
		}
	}
	return names
}

// planSecrets plans which secrets the server will have, and warns about those that it will no
// longer have. If the server would reject the write because a secret must be given again, this is
// reported here. replaced says that the object is replaced.
func (r *Resource) planSecrets(plan map[string]tftypes.Value, config, before tftypes.Value, t tftypes.Type, replaced bool, diags *diag.Diagnostics) {
	if r.secrets() == nil {
		return
	}
	key := r.key(plan)
	kept, settled := r.keptSecrets(tftypes.NewValue(t, plan), config, before, replaced, diags)
	r.visitSecrets(plan, AttributesOf(config), AttributesOf(before), func(s secretPlan) tftypes.Value {
		if s.raised && s.given.IsNull() {
			diags.AddAttributeError(s.at, "A new version of no value", Sentence(s.withoutValue()))
			return s.planned
		}
		after := s.after()
		if settled && after.IsKnown() && !after.IsNull() {
			after = s.among(kept)
		}
		gone := after
		reason := fmt.Sprintf("%s does not name it", s.at)
		switch {
		case replaced && s.given.IsNull():
			gone, reason = emptyStored(s.planned.Type()), "the object is replaced, and the new one has no secret that is not given again"
		case s.given.IsNull():
			reason = "the name that it belongs to was removed"
		case s.emptied():
			reason = fmt.Sprintf("%s is empty", s.at)
		}
		for _, name := range s.lost(gone) {
			warnOfLoss(diags, s.at, key, s.name, name, reason)
		}
		return after
	})
	r.warnOfLostBlocks(plan, AttributesOf(before), key, diags)
}

// warnOfLostBlocks warns about secrets that are removed together with their block.
func (r *Resource) warnOfLostBlocks(plan, before map[string]tftypes.Value, key api.Key, diags *diag.Diagnostics) {
	secrets := r.secrets()
	for i := range secrets {
		secret, plan := &secrets[i], plan
		for depth, name := range secret.block {
			block := plan[name]
			if plan = AttributesOf(block); plan != nil {
				continue
			}
			stored := secret.valuesIn(before)[secret.name+storedSuffix]
			if block.IsKnown() && stored.Type() != nil && !stored.IsNull() && stored.IsKnown() && !isEmpty(stored) {
				at := secret.blockAt(depth + 1)
				warnOfLoss(diags, at, key, secret.name, "", at.String()+" is removed")
			}
			break
		}
	}
}

// warnOfLoss warns that a secret is removed. name is the key of a secret in a map.
func warnOfLoss(diags *diag.Diagnostics, at path.Path, key api.Key, secret, name, reason string) {
	what := strings.ReplaceAll(secret, "_", " ")
	if name != "" {
		what = strings.TrimSuffix(what, "s") + " " + strconv.Quote(name)
	}
	diags.AddAttributeWarning(at, fmt.Sprintf("The %s of %s will be removed", what, key), Sentence(reason))
}

// among returns what the server will have of the secret if it keeps the given fields.
func (s *secretPlan) among(kept map[string]api.Secret) tftypes.Value {
	t := s.planned.Type()
	if !s.isMap {
		_, ok := kept[s.field]
		return tftypes.NewValue(t, ok)
	}
	var names []string
	for field := range kept {
		if strings.HasPrefix(field, s.field+"[") {
			steps := api.SplitField(field)
			name, _ := steps[len(steps)-1].(string)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	elements := make([]tftypes.Value, len(names))
	for i, name := range names {
		elements[i] = tftypes.NewValue(tftypes.String, name)
	}
	return tftypes.NewValue(t, elements)
}

// keptSecrets returns the secrets that the server will keep when a plan is applied, by the server's
// rules. ok is false if that depends on unknown values.
func (r *Resource) keptSecrets(plan, config, before tftypes.Value, replaced bool, diags *diag.Diagnostics) (kept map[string]api.Secret, ok bool) {
	var d, b configDocument
	document, err := r.written(&d, config, plan)
	if err != nil || len(d.Unknown) > 0 {
		return nil, false
	}
	for _, field := range r.takenSecrets(AttributesOf(plan), AttributesOf(config), AttributesOf(before), false) {
		empty(document, field)
	}
	next, err := Unflatten(r.Kind, document)
	if err != nil {
		return nil, false // reported by ValidateConfig
	}
	var current api.Object
	if !before.IsNull() && !replaced {
		was, err := r.read(&b, before)
		if err != nil {
			return nil, false
		}
		foldSecrets(r.secrets(), was, true)
		if current, err = Unflatten(r.Kind, was); err != nil {
			return nil, false
		}
	}
	errs := api.KeepSecrets(next, current, map[string]any{"spec": document})
	for _, field := range secretSpelling(r.secrets(), errs) {
		fieldDiagnostic(diags, "Cannot plan "+r.key(AttributesOf(plan)).String(), plan.Type(), field)
	}
	return next.Secrets(), true
}

// takenSecrets returns the fields of the secrets that a plan removes. During apply, only the plan
// counts: the configuration's values may have changed by then.
func (r *Resource) takenSecrets(plan, config, before map[string]tftypes.Value, applied bool) []string {
	var fields []string
	r.visitSecrets(maps.Clone(plan), config, before, func(s secretPlan) tftypes.Value {
		if s.emptied() && (!applied || isEmpty(s.planned)) {
			fields = append(fields, s.field)
		}
		return s.planned
	})
	return fields
}

// empty replaces a secret by empty text or an empty map.
func empty(document map[string]any, field string) {
	steps := api.SplitField(field)[1:]
	for i, step := range steps {
		name, _ := step.(string)
		if i < len(steps)-1 {
			inner, _ := document[name].(map[string]any)
			document = inner
			continue
		}
		if document != nil && document[name] == nil {
			document[name] = ""
		}
	}
}
