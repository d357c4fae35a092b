package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// warnings returns warnings about settings that are valid but probably not intended.
func (w *workload) warnings(kind string, s spot.Settings) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	d := s.Distribution
	custom := d.Mode == api.ModeCustom
	if d.CustomOnDemand != "" && !custom {
		warn("%s = %q is ignored: it needs the label %s = custom", onDemandName, d.CustomOnDemand, modeName)
	}
	if custom && split.Targets(kind, w.replicas(), d).Clamped {
		warn("%s = %q is more than the %d replicas: all of them go to on-demand nodes", onDemandName, d.CustomOnDemand, w.replicas())
	}
	if s.Enabled == nil && d != (api.DistributionSpec{}) {
		warn("the settings of %s* have no effect on their own: the label %s = true enables them", spot.LabelsEnabled[0], spot.LabelsEnabled[0])
	}
	for _, key := range slices.Sorted(maps.Keys(settings(w.Metadata.Annotations))) {
		if !strings.HasSuffix(key, "-custom-on-demand") {
			warn("the annotation %s is not read: make it a label", key)
		}
	}
	template := &w.Spec.Template.Metadata
	if len(settings(template.Labels))+len(settings(template.Annotations)) > 0 {
		warn("the settings of %s* in the pod template are not read: they belong to the %s itself", spot.LabelsEnabled[0], kind)
	}
	for _, key := range spot.LabelsAffinity {
		if _, selected := w.Spec.Selector.MatchLabels[key]; selected {
			warn("spec.selector names the label %s, which is set for each pod as it is created: pods may not be found again", key)
		}
	}
	return out
}

// Canonical names of two settings.
const (
	modeName     = "vacant.io/optimize-scheduling-mode"
	onDemandName = modeName + "-custom-on-demand"
)
