package spot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// TestSettings covers the accepted spellings, and the errors for others.
func TestSettings(t *testing.T) {
	const io, sh = "vacant.io/optimize-scheduling", "vacant.sh/optimize-scheduling"
	type m = map[string]string
	for _, test := range []struct {
		name                string
		labels, annotations m
		enabled             string
		mode                api.DistributionMode
		amount              api.OnDemandAmount
		wrong               []string // keys
	}{
		{name: "no labels", labels: m{"app": "web"}},
		{name: "enabled", labels: m{io: "true"}, enabled: "true"},
		{name: "disabled with the other prefix", labels: m{sh: "false"}, enabled: "false"},
		{name: "other name of the mode", labels: m{sh + "-strategy": "all-in-spot"}, mode: api.ModeAllInSpot},
		{name: "both names, same value", labels: m{io + "-mode": "all-in-spot", sh + "-strategy": "all-in-spot"}, mode: api.ModeAllInSpot},
		{name: "both names, different values", labels: m{io + "-mode": "all-in-spot", sh + "-mode": "custom"}, mode: api.ModeAllInSpot, wrong: []string{sh + "-mode"}},
		{name: "count", labels: m{io + "-mode": "custom", io + "-mode-custom-on-demand": "3"}, mode: api.ModeCustom, amount: "3"},
		{name: "percentage", labels: m{io + "-mode": "custom"}, annotations: m{io + "-strategy-custom-on-demand": "30%"}, mode: api.ModeCustom, amount: "30%"},
		{name: "the annotation takes precedence", labels: m{io + "-mode": "custom", io + "-mode-custom-on-demand": "3"}, annotations: m{io + "-mode-custom-on-demand": "30%"}, mode: api.ModeCustom, amount: "30%"},
		{name: "percentage above 100", labels: m{io + "-mode": "custom"}, annotations: m{io + "-mode-custom-on-demand": "130%"}, mode: api.ModeCustom, amount: "130%", wrong: []string{io + "-mode-custom-on-demand"}},
		{name: "custom without an amount", labels: m{io + "-mode": "custom"}, mode: api.ModeCustom, wrong: []string{io + "-mode-custom-on-demand"}},
		{name: "neither true nor false", labels: m{io: "yes"}, enabled: "false", wrong: []string{io}},
		{name: "unknown mode", labels: m{io + "-mode": "all"}, wrong: []string{io + "-mode"}},
		{name: "misspelled", labels: m{io + "-mod": "custom"}, wrong: []string{io + "-mod"}},
		{name: "two errors", labels: m{io: "yes", io + "-mode": "all"}, enabled: "false", wrong: []string{io, io + "-mode"}},
	} {
		s, err := ParseSettings(test.labels, test.annotations)
		enabled := ""
		if s.Enabled != nil {
			enabled = map[bool]string{true: "true", false: "false"}[*s.Enabled]
		}
		if enabled != test.enabled || s.Distribution.Mode != test.mode || s.Distribution.CustomOnDemand != test.amount {
			t.Errorf("%s: enabled %q, distribution %+v", test.name, enabled, s.Distribution)
		}
		if (err != nil) != (test.wrong != nil) {
			t.Errorf("%s: %v", test.name, err)
		}
		for _, key := range test.wrong {
			if !strings.Contains(err.Error(), key+": ") {
				t.Errorf("%s: error %v does not name %s", test.name, err, key)
			}
		}
	}
}

// FuzzParseSettings checks that, for any labels, an accepted amount or mode is valid.
func FuzzParseSettings(f *testing.F) {
	f.Add("true", "custom", "3", "30%")
	f.Add("false", "all-in-spot", "", "")
	f.Add("yes", "all", "-1", "101%")
	f.Fuzz(func(t *testing.T, enabled, mode, label, annotation string) {
		labels := map[string]string{"vacant.io/optimize-scheduling": enabled, "vacant.sh/optimize-scheduling-mode": mode}
		annotations := map[string]string{}
		if label != "" {
			labels["vacant.io/optimize-scheduling-mode-custom-on-demand"] = label
		}
		if annotation != "" {
			annotations["vacant.io/optimize-scheduling-mode-custom-on-demand"] = annotation
		}
		s, err := ParseSettings(labels, annotations)
		if err != nil {
			var one *SettingsError
			if !errors.As(err, &one) || one.Key == "" {
				t.Errorf("error %v does not name a label", err)
			}
			return
		}
		if s.Enabled == nil || *s.Enabled != (enabled == "true") {
			t.Errorf("enabled label %q was read as %v", enabled, s.Enabled)
		}
		if again, err := ParseMode(mode); err != nil || again != s.Distribution.Mode {
			t.Errorf("ParseMode(%q) = %q, %v", mode, again, err)
		}
		if target := split.Targets(api.KindDeployment, 7, s.Distribution); target.Total() != 7 || target.OnDemand < 0 || target.Spot < 0 {
			t.Errorf("%+v results in %+v", s.Distribution, target)
		}
	})
}

// FuzzEnding checks that the end of a node is only announced by known taints, and has a valid time.
func FuzzEnding(f *testing.F) {
	f.Add(TaintInterruption, "1767225720", int64(0), "Ready", int64(0))
	f.Add("karpenter.sh/disrupted", "", int64(1767225720), "PreemptScheduled", int64(1767225600))
	f.Add(TaintInterruption, "9223372036854775807", int64(-1), "", int64(1))
	seen := time.Unix(1767225600, 0)
	f.Fuzz(func(t *testing.T, key, value string, added int64, condition string, since int64) {
		taints := []Taint{{Key: key, Value: value, Added: time.Unix(added, 0)}, {Key: key, Value: value}}
		by, ends, ending := Ending(taints, []NodeCondition{{Type: condition, Since: time.Unix(since, 0)}}, seen)
		switch {
		case ending != (by != ""):
			t.Errorf("ending = %t, by %q", ending, by)
		case ending && by != key && by != condition:
			t.Errorf("ending by %q, want the key or the condition", by)
		case !ending && !ends.IsZero():
			t.Errorf("not ending, but at %s", ends)
		}
	})
}

// TestNodeLabels checks that the rules for a node type select exactly the nodes of that type.
func TestNodeLabels(t *testing.T) {
	for _, key := range []string{api.DefaultNodeTypeKey, "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority", "example.com/own"} {
		l := LabelOf(key)
		for _, value := range []string{"", "on-demand", "reserved", "spot", "ON_DEMAND", "CAPACITY_BLOCK", "SPOT", "true", "false", "Regular"} {
			labels := map[string]string{key: value}
			if value == "" {
				labels = nil
			}
			for _, nodeType := range []split.NodeType{split.OnDemand, split.Spot} {
				r := l.Requirement(nodeType)
				found := false
				for _, v := range r.Values {
					found = found || labels != nil && v == value
				}
				takes := found == (r.Operator == "In")
				if takes != (l.TypeOf(labels) == nodeType) {
					t.Errorf("%s=%s is %q, but the rule for %s selects it: %t", key, value, l.TypeOf(labels), nodeType, takes)
				}
			}
		}
		if k, v := l.Taint(); k != key || l.TypeOf(map[string]string{key: v}) != split.Spot {
			t.Errorf("taint of spot nodes %s=%s", k, v)
		}
	}
}
