package api

import (
	"slices"
	"strconv"
	"time"
)

// TaintEffect is what a taint does to placements that do not tolerate it.
type TaintEffect string

// Taint effects, in the two spellings of rule 6 (docs/architecture.md): those of Open Cluster Management and those
// of Kubernetes.
const (
	// EffectNoSelect prevents new decisions and ends existing ones.
	EffectNoSelect  TaintEffect = "NoSelect"
	EffectNoExecute TaintEffect = "NoExecute"
	// EffectNoSelectIfNew prevents new decisions; existing ones stay.
	EffectNoSelectIfNew TaintEffect = "NoSelectIfNew"
	EffectNoSchedule    TaintEffect = "NoSchedule"
	// EffectPreferNoSelect ranks the cluster last among equals.
	EffectPreferNoSelect   TaintEffect = "PreferNoSelect"
	EffectPreferNoSchedule TaintEffect = "PreferNoSchedule"
)

// TaintEffects are all spellings of the effects.
var TaintEffects = []TaintEffect{
	EffectNoSelect, EffectNoSelectIfNew, EffectPreferNoSelect,
	EffectNoExecute, EffectNoSchedule, EffectPreferNoSchedule,
}

// Canonical returns the effect in the spelling of Open Cluster Management: NoExecute becomes
// NoSelect.
func (e TaintEffect) Canonical() TaintEffect {
	switch e {
	case EffectNoExecute:
		return EffectNoSelect
	case EffectNoSchedule:
		return EffectNoSelectIfNew
	case EffectPreferNoSchedule:
		return EffectPreferNoSelect
	case EffectNoSelect, EffectNoSelectIfNew, EffectPreferNoSelect:
	}
	return e
}

// Keys of the taints that the server sets itself.
const (
	// TaintUnreachable: heartbeats are missing or probes fail.
	TaintUnreachable = "scheduler/unreachable"
	// TaintUnhealthy: the cluster responds and reports that it is unhealthy.
	TaintUnhealthy = "scheduler/unhealthy"
)

// AutomaticTaint reports whether the server itself manages the taints with this key.
func AutomaticTaint(key string) bool { return key == TaintUnreachable || key == TaintUnhealthy }

// Taint keeps placements that do not tolerate it off a cluster.
type Taint struct {
	Key    string      `json:"key" doc:"Key of the taint, in the form of a label key."`
	Value  string      `json:"value,omitempty" maxLength:"1024" doc:"Value that tolerations may compare with."`
	Effect TaintEffect `json:"effect" enum:"NoSelect,NoSelectIfNew,PreferNoSelect,NoExecute,NoSchedule,PreferNoSchedule" doc:"'NoSelect' (or 'NoExecute'): no new decisions, and existing ones end. 'NoSelectIfNew' (or 'NoSchedule'): no new decisions, but existing ones stay. 'PreferNoSelect' (or 'PreferNoSchedule'): ranked last among equals."`
}

// ClusterTaint is a taint in force, with the time when it was added.
type ClusterTaint struct {
	Key       string      `json:"key" doc:"Key of the taint."`
	Value     string      `json:"value,omitempty" doc:"Value that tolerations may compare with."`
	Effect    TaintEffect `json:"effect" enum:"NoSelect,NoSelectIfNew,PreferNoSelect,NoExecute,NoSchedule,PreferNoSchedule" doc:"What happens to placements that do not tolerate the taint, as for declared taints."`
	TimeAdded *time.Time  `json:"time_added,omitempty" doc:"When the taint was added. 'toleration_seconds' counts from then."`
}

// Is reports whether the taint matches a declared one, in either spelling of the effect.
func (t ClusterTaint) Is(declared Taint) bool {
	return t.Key == declared.Key && t.Value == declared.Value && t.Effect.Canonical() == declared.Effect.Canonical()
}

// Taints returns the taints in force: the declared ones, and those in the status that the server
// added itself. The time of a declared taint comes from the status, or from the last change of the
// cluster if the status does not have the taint yet. A taint in the status that the cluster no
// longer declares is left out.
func (c *Cluster) Taints() []ClusterTaint {
	if len(c.Spec.Taints) == 0 && len(c.Status.Taints) == 0 {
		return nil
	}
	out := make([]ClusterTaint, 0, len(c.Spec.Taints)+len(c.Status.Taints))
	for _, t := range c.Spec.Taints {
		in := ClusterTaint{Key: t.Key, Value: t.Value, Effect: t.Effect, TimeAdded: c.Metadata.ModifiedAt}
		if i := slices.IndexFunc(c.Status.Taints, func(s ClusterTaint) bool { return s.Is(t) }); i >= 0 {
			in.TimeAdded = c.Status.Taints[i].TimeAdded
		}
		out = append(out, in)
	}
	outdated := c.Status.ObservedGeneration > 0 && c.Status.ObservedGeneration < c.Metadata.Generation
	for _, s := range c.Status.Taints {
		declared := slices.ContainsFunc(c.Spec.Taints, s.Is)
		if !declared && (AutomaticTaint(s.Key) || !outdated) {
			out = append(out, s)
		}
	}
	return out
}

func validateTaints(errs *FieldErrors, field string, taints []Taint) {
	seen := map[Taint]TaintEffect{}
	for i, t := range taints {
		at := index(field, i)
		if t.Key == "" {
			errs.Add(at+".key", "is required")
		} else {
			errs.check(at+".key", checkLabelKey(t.Key))
		}
		if AutomaticTaint(t.Key) {
			errs.Add(at+".key", "%q is reserved for taints that the server sets itself: choose another key", t.Key)
		}
		spelled := t.Effect
		t.Effect = t.Effect.Canonical()
		switch first, ok := seen[t]; {
		case !ok:
			seen[t] = spelled
		case first == spelled:
			errs.Add(at, "the taint with the key %q, the value %q and the effect %q is listed twice", t.Key, t.Value, spelled)
		default:
			errs.Add(at, "the taint with the key %q and the value %q is listed twice: the effects %q and %q are the same", t.Key, t.Value, first, spelled)
		}
	}
}

// TolerationOperator compares a toleration with a taint.
type TolerationOperator string

// Operators of tolerations.
const (
	TolerationEqual  TolerationOperator = "Equal"
	TolerationExists TolerationOperator = "Exists"
)

// Toleration lets a placement use clusters with taints it matches.
type Toleration struct {
	Key               string             `json:"key,omitempty" doc:"Key of the taint. If omitted, and 'operator' is 'Exists', every taint."`
	Operator          TolerationOperator `json:"operator,omitempty" enum:"Equal,Exists" default:"Equal" doc:"'Equal' compares the value, 'Exists' does not."`
	Value             string             `json:"value,omitempty" doc:"Value of the taint."`
	Effect            TaintEffect        `json:"effect,omitempty" enum:"NoSelect,NoSelectIfNew,PreferNoSelect,NoExecute,NoSchedule,PreferNoSchedule" doc:"Effect of the taint, in either spelling. If omitted, every effect."`
	TolerationSeconds *int64             `json:"toleration_seconds,omitempty" doc:"How long the taint is tolerated after it was added. If omitted, forever. '0' or less means not at all."`
}

// Matches reports whether the toleration applies to a taint, regardless of time.
func (t *Toleration) Matches(key, value string, effect TaintEffect) bool {
	if t.Effect != "" && t.Effect.Canonical() != effect.Canonical() {
		return false
	}
	if t.Key != "" && t.Key != key {
		return false
	}
	return t.Operator == TolerationExists || t.Value == value
}

// String returns the toleration for messages: `key=value:NoSelect for 300s`.
func (t *Toleration) String() string {
	text := t.Key
	if t.Key == "" {
		text = "*"
	}
	if t.Operator != TolerationExists {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	if t.TolerationSeconds != nil {
		text += " for " + strconv.FormatInt(*t.TolerationSeconds, 10) + "s"
	}
	return text
}

func validateTolerations(errs *FieldErrors, field string, tolerations []Toleration) {
	for i, t := range tolerations {
		at := index(field, i)
		switch {
		case t.Key == "" && t.Operator == TolerationEqual:
			errs.Add(at+".operator", "If the key is empty, operator must be Exists.")
		case t.Key != "":
			errs.check(at+".key", checkLabelKey(t.Key))
		}
		if t.Operator == TolerationExists && t.Value != "" {
			errs.Add(at+".value", "must be absent because operator is %q", string(TolerationExists))
		}
	}
}
