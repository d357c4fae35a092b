package install

import (
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Names in a cluster.
const (
	// configurationName is the name of both configurations.
	configurationName = "scheduler-distribution"

	podsWebhook      = "pods.distribution.vacant.io"
	podLabelsWebhook = "pod-labels.distribution.vacant.io"
	workloadsWebhook = "workloads.distribution.vacant.io"
	probeWebhook     = "probe.distribution.vacant.io"

	// namespaceName is the label with the name that every namespace has.
	namespaceName = "kubernetes.io/metadata.name"
)

// DefaultTimeout is how long API servers wait for the webhook, unless told otherwise.
const DefaultTimeout = 3 * time.Second

// Conditions under which the API server calls the webhook at all. The API server evaluates them
// itself, so that irrelevant objects cause no call.
var (
	controlled = admissionv1.MatchCondition{
		Name: "controlled-by-a-workload",
		Expression: `has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(r,
  has(r.controller) && r.controller && r.apiVersion.startsWith('apps/') && r.kind in ['ReplicaSet', 'StatefulSet'])`,
	}
	configured = admissionv1.MatchCondition{
		Name: "asks-for-a-split",
		Expression: `(has(object.metadata.labels) && object.metadata.labels.exists(k,
  k.startsWith('vacant.io/optimize-scheduling') || k.startsWith('vacant.sh/optimize-scheduling')))
|| (has(object.metadata.annotations) && object.metadata.annotations.exists(k,
  k.startsWith('vacant.io/optimize-scheduling') || k.startsWith('vacant.sh/optimize-scheduling')))`,
	}
	relabelled = admissionv1.MatchCondition{
		Name: "changes-what-a-pod-is-for",
		Expression: `['vacant.io/affinity', 'vacant.sh/affinity'].exists(k,
  (has(object.metadata.labels) && k in object.metadata.labels) != (has(oldObject.metadata.labels) && k in oldObject.metadata.labels)
  || (has(object.metadata.labels) && k in object.metadata.labels && object.metadata.labels[k] != oldObject.metadata.labels[k]))`,
	}
	tried = admissionv1.MatchCondition{
		Name:       "is-the-probe",
		Expression: `request.dryRun && object.metadata.name == '` + probeName + `'`,
	}
)

// metadata returns the metadata of both configurations.
func metadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:   configurationName,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "scheduler-server"},
		// Azure rewrites the selectors of webhooks to exclude the system's namespaces, unless told
		// that this has been done; otherwise both would keep rewriting them.
		Annotations: map[string]string{"admissions.enforcer/disabled": "true"},
	}
}

// mutating returns the mutating configuration. Every field is set, including defaults, so that it
// can be compared with the existing one.
func (i *Installer) mutating(bundle []byte) *admissionv1.MutatingWebhookConfiguration {
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metadata(),
		Webhooks: []admissionv1.MutatingWebhook{
			{
				Name:                    podsWebhook,
				ClientConfig:            i.address("/pods", bundle),
				Rules:                   rules("", []string{"pods"}, admissionv1.Create),
				FailurePolicy:           new(admissionv1.Ignore),
				MatchPolicy:             new(admissionv1.Equivalent),
				NamespaceSelector:       selector(append([]metav1.LabelSelectorRequirement{i.namespaces()}, notOptedOut()...)...),
				ObjectSelector:          selector(notOptedOut()...),
				SideEffects:             new(admissionv1.SideEffectClassNoneOnDryRun),
				TimeoutSeconds:          new(i.timeoutSeconds()),
				AdmissionReviewVersions: []string{"v1"},
				ReinvocationPolicy:      new(admissionv1.NeverReinvocationPolicy),
				MatchConditions:         []admissionv1.MatchCondition{controlled},
			},
			{
				Name:         probeWebhook,
				ClientConfig: i.address("/probe", bundle),
				Rules:        rules("", []string{"configmaps"}, admissionv1.Create),
				// Only the probe can fail because of this, which is intended: the API server then
				// reports why.
				FailurePolicy: new(admissionv1.Fail),
				MatchPolicy:   new(admissionv1.Equivalent),
				NamespaceSelector: selector(metav1.LabelSelectorRequirement{
					Key: namespaceName, Operator: metav1.LabelSelectorOpIn, Values: []string{probeNamespace},
				}),
				ObjectSelector:          selector(metav1.LabelSelectorRequirement{Key: spot.LabelProbe, Operator: metav1.LabelSelectorOpExists}),
				SideEffects:             new(admissionv1.SideEffectClassNone),
				TimeoutSeconds:          new(i.timeoutSeconds()),
				AdmissionReviewVersions: []string{"v1"},
				ReinvocationPolicy:      new(admissionv1.NeverReinvocationPolicy),
				MatchConditions:         []admissionv1.MatchCondition{tried},
			},
		},
	}
}

// validating returns the validating configuration.
func (i *Installer) validating(bundle []byte) *admissionv1.ValidatingWebhookConfiguration {
	webhook := func(name, path string, condition admissionv1.MatchCondition, on []admissionv1.RuleWithOperations) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{
			Name:                    name,
			ClientConfig:            i.address(path, bundle),
			Rules:                   on,
			FailurePolicy:           new(admissionv1.Ignore),
			MatchPolicy:             new(admissionv1.Equivalent),
			NamespaceSelector:       selector(i.namespaces()),
			ObjectSelector:          selector(),
			SideEffects:             new(admissionv1.SideEffectClassNone),
			TimeoutSeconds:          new(i.timeoutSeconds()),
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions:         []admissionv1.MatchCondition{condition},
		}
	}
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metadata(),
		Webhooks: []admissionv1.ValidatingWebhook{
			webhook(workloadsWebhook, "/workloads", configured,
				rules("apps", []string{"deployments", "statefulsets"}, admissionv1.Create, admissionv1.Update)),
			webhook(podLabelsWebhook, "/pod-labels", relabelled, rules("", []string{"pods"}, admissionv1.Update)),
		},
	}
}

func (i *Installer) timeoutSeconds() int32 { return int32(i.options.Timeout / time.Second) }

func (i *Installer) address(path string, bundle []byte) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{URL: new(i.options.BaseURL + path), CABundle: bundle}
}

// rules returns rules for operations on namespaced objects in version v1 of a group.
func rules(group string, resources []string, operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources, Scope: new(admissionv1.NamespacedScope),
		},
	}}
}

func selector(requirements ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: requirements}
}

// namespaces excludes the system's namespaces and those in the options.
func (i *Installer) namespaces() metav1.LabelSelectorRequirement {
	excluded := slices.Concat(spot.SystemNamespaces, i.options.ExcludeNamespaces)
	slices.Sort(excluded)
	return metav1.LabelSelectorRequirement{Key: namespaceName, Operator: metav1.LabelSelectorOpNotIn, Values: slices.Compact(excluded)}
}

// notOptedOut excludes objects that have splitting disabled by label.
func notOptedOut() []metav1.LabelSelectorRequirement {
	out := make([]metav1.LabelSelectorRequirement, len(spot.LabelsEnabled))
	for n, key := range spot.LabelsEnabled {
		out[n] = metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"false"}}
	}
	return out
}
