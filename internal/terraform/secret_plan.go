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

// secretPlan is what a plan does with one secret.
type secretPlan struct {
	name  string
	field string // of the API: spec.kubernetes.kubeconfig
	at    path.Path
	isMap bool
	// given is what the configuration gives, and before is what the server had: null
	// where a state of an earlier provider does not say it.
	given, before tftypes.Value
	// raised says that the version changes.
	raised bool
	// planned is what the plan says the server has afterwards.
	planned tftypes.Value
}

// visitSecrets calls visit with every secret of a plan that has the block the
// secret belongs to, and puts what it returns into the plan.
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
			if former := given[name]; former.Type() != nil && !former.IsNull() {
				s.given, s.at = former, secret.at("")
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

// change changes the attributes of an object in others, if it is there.
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

// emptyStored says that the server has no secret.
func emptyStored(t tftypes.Type) tftypes.Value {
	if t.Is(tftypes.Bool) {
		return tftypes.NewValue(t, false)
	}
	return tftypes.NewValue(t, []tftypes.Value{})
}

// emptied reports that the secret is taken away: by an empty value, or by another
// version of none.
func (s *secretPlan) emptied() bool {
	if s.given.IsNull() {
		return s.raised
	}
	return s.given.IsKnown() && isEmpty(s.given)
}

// after is what the server has when the plan is applied.
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

// lost are the names of the secrets that the server has no longer afterwards, "" for
// one that has no name.
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
	still := elementsOf(after)
	for _, name := range elementsOf(s.before) {
		if !slices.ContainsFunc(still, name.Equal) {
			names = append(names, TextOf(name))
		}
	}
	return names
}

// planSecrets says in the plan which secrets the server has when it is applied, and
// warns of those that it then has no longer. What the server would refuse because
// a secret is not given again is refused here. replaced says that the object is
// made anew.
func (r *Resource) planSecrets(plan map[string]tftypes.Value, config, before tftypes.Value, t tftypes.Type, replaced bool, diags *diag.Diagnostics) {
	if r.secrets() == nil {
		return
	}
	key := r.key(plan)
	kept, settled := r.keptSecrets(tftypes.NewValue(t, plan), config, before, replaced, diags)
	r.visitSecrets(plan, AttributesOf(config), AttributesOf(before), func(s secretPlan) tftypes.Value {
		after := s.after()
		if settled && after.IsKnown() && !after.IsNull() {
			after = s.among(kept)
		}
		gone := after
		reason := fmt.Sprintf("%s does not name it", s.at)
		switch {
		case replaced && s.given.IsNull():
			gone, reason = emptyStored(s.planned.Type()), "the object is replaced, and the new one has no secret that is not given again"
		case s.given.IsNull() && s.raised:
			reason = fmt.Sprintf("%s changes while %s is null", s.name+versionSuffix, s.name+WriteOnlySuffix)
		case s.given.IsNull():
			reason = "the name that it belongs to is gone"
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

// warnOfLostBlocks warns of the secrets that go with the block they are in.
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

// warnOfLoss says in words that a secret is taken away. name is that of one in a
// map.
func warnOfLoss(diags *diag.Diagnostics, at path.Path, key api.Key, secret, name, reason string) {
	what := strings.ReplaceAll(secret, "_", " ")
	if name != "" {
		what = strings.TrimSuffix(what, "s") + " " + strconv.Quote(name)
	}
	diags.AddAttributeWarning(at, fmt.Sprintf("The %s of %s will be removed", what, key), Sentence(reason))
}

// among is what the server has of the secret when it keeps those fields.
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

// keptSecrets are the secrets that the server has when a plan is applied, by its own
// rules. ok is false where something they follow from is not known yet.
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
		return nil, false // ValidateConfig says what is wrong
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
	for _, field := range secretSpelling(r.secrets(), config, errs) {
		fieldDiagnostic(diags, "Cannot plan "+r.key(AttributesOf(plan)).String(), plan.Type(), field)
	}
	return next.Secrets(), true
}

// takenSecrets are the fields of the secrets that a plan takes away. Where the plan
// is applied, it must have said so: what the configuration gives may come from
// elsewhere by then.
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

// empty puts an empty text, or an empty map, in the place of a secret.
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
