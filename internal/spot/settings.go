package spot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// Names set on pods of a split.
const (
	// LabelAffinity is the node type that a pod is meant for.
	LabelAffinity = "vacant.io/affinity"
	// AnnotationAdmission is the UID of the request that admitted the pod.
	AnnotationAdmission = "vacant.io/admission"
)

// LabelProbe is the label of the ConfigMap that checks whether the API server of a cluster reaches
// the webhook. The ConfigMap is never stored; it is returned with an annotation of the same name
// and value.
const LabelProbe = "vacant.io/webhook-probe"

// LabelsEnabled are the labels that enable or disable a split, with both prefixes.
var LabelsEnabled = []string{prefixes[0] + nameEnabled, prefixes[1] + nameEnabled}

// LabelsAffinity are the labels with the node type that a pod is meant for, LabelAffinity first.
var LabelsAffinity = []string{LabelAffinity, prefixes[1] + nameAffinity}

// Prefixes of labels, the canonical one first, and their names.
var prefixes = []string{"vacant.io/", "vacant.sh/"}

const (
	nameEnabled      = "optimize-scheduling"
	nameMode         = "optimize-scheduling-mode"
	nameModeAlias    = "optimize-scheduling-strategy"
	nameAffinity     = "affinity"
	nameOnDemandTail = "-custom-on-demand"
)

// Settings are requested by the labels and annotations of a Deployment or StatefulSet.
type Settings struct {
	// Enabled is nil if not set.
	Enabled      *bool
	Distribution api.DistributionSpec
}

// SettingsError says what is wrong with one label or annotation.
type SettingsError struct{ Key, Message string }

// Error implements error.
func (e *SettingsError) Error() string { return e.Key + ": " + e.Message }

// modes are the modes by their spelling in labels.
var modes = func() map[string]api.DistributionMode {
	m := map[string]api.DistributionMode{}
	for _, mode := range api.DistributionModes {
		m[strings.ReplaceAll(string(mode), "_", "-")] = mode
	}
	return m
}()

// ParseMode parses a mode as spelled in labels, with hyphens, or in Terraform, with underscores.
func ParseMode(text string) (api.DistributionMode, error) {
	mode, ok := modes[strings.ReplaceAll(text, "_", "-")]
	if !ok {
		return "", fmt.Errorf("%q is not a mode: use all-in-on-demand, all-in-spot, majority-in-on-demand or custom", text)
	}
	return mode, nil
}

// ParseSettings parses the labels and annotations of a Deployment or StatefulSet. Both prefixes and
// both names of the mode are accepted. The number of on-demand replicas is a label; a percentage,
// which is not a valid label value, is an annotation of the same name, which takes precedence. The
// error joins a *SettingsError for each problem.
func ParseSettings(labels, annotations map[string]string) (Settings, error) {
	r := settingsReader{labels: labels, annotations: annotations}
	var s Settings
	if key, value, ok := r.label(nameEnabled); ok {
		enabled := value == "true"
		if !enabled && value != "false" {
			r.fail(key, "%q must be \"true\" or \"false\"", value)
		}
		s.Enabled = &enabled
	}
	if key, value, ok := r.label(nameMode, nameModeAlias); ok {
		mode, known := modes[value]
		if !known {
			r.fail(key, "%q must be all-in-on-demand, all-in-spot, majority-in-on-demand or custom", value)
		}
		s.Distribution.Mode = mode
	}
	s.Distribution.CustomOnDemand = r.amount()
	if s.Distribution.Mode == api.ModeCustom && s.Distribution.CustomOnDemand == "" && len(r.errs) == 0 {
		r.fail(prefixes[0]+nameMode+nameOnDemandTail, "is required with mode custom: a number of replicas in this label, or a percentage such as \"30%%\" in an annotation of this name")
	}
	r.unknown()
	return s, errors.Join(r.errs...)
}

// settingsReader reads one set of labels and annotations.
type settingsReader struct {
	labels, annotations map[string]string
	errs                []error
}

func (r *settingsReader) fail(key, format string, args ...any) {
	r.errs = append(r.errs, &SettingsError{key, fmt.Sprintf(format, args...)})
}

// label finds a label under one of several names. Two with different values are an error.
func (r *settingsReader) label(names ...string) (key, value string, ok bool) {
	return r.find(r.labels, names)
}

func (r *settingsReader) find(in map[string]string, names []string) (key, value string, ok bool) {
	for _, prefix := range prefixes {
		for _, name := range names {
			v, there := in[prefix+name]
			switch {
			case there && ok && v != value:
				r.fail(prefix+name, "%q differs from %q in %s, which means the same: give one of them", v, value, key)
			case there && !ok:
				key, value, ok = prefix+name, v, true
			}
		}
	}
	return key, value, ok
}

func (r *settingsReader) amount() api.OnDemandAmount {
	names := []string{nameMode + nameOnDemandTail, nameModeAlias + nameOnDemandTail}
	labelKey, labelValue, labelled := r.label(names...)
	if labelled {
		if _, percent, err := api.OnDemandAmount(labelValue).Parse(); err != nil || percent {
			r.fail(labelKey, "%q must be a number of replicas from 0 up; a percentage goes into an annotation of this name", labelValue)
		}
	}
	key, value, ok := r.find(r.annotations, names)
	if !ok {
		return api.OnDemandAmount(labelValue)
	}
	if _, _, err := api.OnDemandAmount(value).Parse(); err != nil {
		r.fail(key, "%s", err)
	}
	return api.OnDemandAmount(value)
}

// unknown finds labels that have our prefix but are unknown, and so probably misspelled.
func (r *settingsReader) unknown() {
	known := []string{nameEnabled, nameMode, nameModeAlias, nameMode + nameOnDemandTail, nameModeAlias + nameOnDemandTail}
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		if name, ours := cutPrefix(key); ours && strings.HasPrefix(name, nameEnabled) && !slices.Contains(known, name) {
			r.fail(key, "is not known; there are %s, %s and %s", nameEnabled, nameMode, nameMode+nameOnDemandTail)
		}
	}
}

func cutPrefix(key string) (name string, ours bool) {
	for _, prefix := range prefixes {
		if name, ours = strings.CutPrefix(key, prefix); ours {
			return name, true
		}
	}
	return "", false
}

// IsAffinity reports whether a label is the node type that a pod is meant for, with either prefix.
func IsAffinity(key string) bool { return slices.Contains(LabelsAffinity, key) }

// AffinityOf returns the node type that a pod is meant for, according to its labels.
func AffinityOf(podLabels map[string]string) split.NodeType {
	for _, key := range LabelsAffinity {
		switch t := split.NodeType(podLabels[key]); t {
		case split.OnDemand, split.Spot:
			return t
		case split.Unset:
		}
	}
	return split.Unset
}
