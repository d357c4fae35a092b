package install

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// configurations is the client of one kind of webhook configurations.
type configurations[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
	Create(ctx context.Context, configuration *T, options metav1.CreateOptions) (*T, error)
	Update(ctx context.Context, configuration *T, options metav1.UpdateOptions) (*T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// keeper keeps one configuration up to date.
type keeper[T any] struct {
	resource string // as in permissions
	client   configurations[T]
	meta     func(*T) *metav1.ObjectMeta
	webhooks func(*T) any
	urls     func(*T) []string
	replace  func(configuration, by *T) // replaces the webhooks

	// wanted is what was last written, and kept what the cluster stored: older clusters drop
	// fields, and some add to them.
	wanted, kept *T
}

func newMutating(client configurations[admissionv1.MutatingWebhookConfiguration]) *keeper[admissionv1.MutatingWebhookConfiguration] {
	type configuration = admissionv1.MutatingWebhookConfiguration
	return newKeeper("mutatingwebhookconfigurations", client,
		func(c *configuration) *metav1.ObjectMeta { return &c.ObjectMeta },
		func(c *configuration) *[]admissionv1.MutatingWebhook { return &c.Webhooks },
		func(w *admissionv1.MutatingWebhook) string { return urlOf(w.ClientConfig) })
}

func newValidating(client configurations[admissionv1.ValidatingWebhookConfiguration]) *keeper[admissionv1.ValidatingWebhookConfiguration] {
	type configuration = admissionv1.ValidatingWebhookConfiguration
	return newKeeper("validatingwebhookconfigurations", client,
		func(c *configuration) *metav1.ObjectMeta { return &c.ObjectMeta },
		func(c *configuration) *[]admissionv1.ValidatingWebhook { return &c.Webhooks },
		func(w *admissionv1.ValidatingWebhook) string { return urlOf(w.ClientConfig) })
}

// newKeeper returns a keeper of configurations of type T with webhooks of type W.
func newKeeper[T, W any](resource string, client configurations[T], meta func(*T) *metav1.ObjectMeta, webhooks func(*T) *[]W, url func(*W) string) *keeper[T] {
	return &keeper[T]{
		resource: resource, client: client, meta: meta,
		webhooks: func(c *T) any { return *webhooks(c) },
		urls: func(c *T) (urls []string) {
			all := *webhooks(c)
			for n := range all {
				urls = append(urls, url(&all[n]))
			}
			return urls
		},
		replace: func(c, by *T) { *webhooks(c) = *webhooks(by) },
	}
}

// urlOf returns the address of a webhook, or "" if it is a service in the cluster.
func urlOf(c admissionv1.WebhookClientConfig) string {
	if c.URL == nil {
		return ""
	}
	return *c.URL
}

// outcome is the result of updating a configuration.
type outcome int

const (
	// asWanted: nothing had to be done.
	asWanted outcome = iota
	// written: the configuration is new or the wanted one has changed.
	written
	// repaired: somebody had changed or deleted it.
	repaired
)

// keep updates the configuration if necessary.
func (k *keeper[T]) keep(ctx context.Context, want *T) (outcome, error) {
	became := written
	if k.wanted != nil && equality.Semantic.DeepEqual(k.wanted, want) {
		became = repaired
	}
	live, err := k.client.Get(ctx, configurationName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		kept, err := k.client.Create(ctx, want, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return asWanted, &callError{"create", k.resource, err}
		}
		k.wanted, k.kept = want, kept
		return became, nil
	}
	if err != nil {
		return asWanted, &callError{"get", k.resource, err}
	}
	if k.satisfied(live, want) {
		return asWanted, nil
	}
	k.replace(live, want)
	ours, meta := k.meta(want), k.meta(live)
	meta.Labels = with(meta.Labels, ours.Labels)
	meta.Annotations = with(meta.Annotations, ours.Annotations)
	// Use the resource version that was read, so that concurrent changes are not lost.
	kept, err := k.client.Update(ctx, live, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return asWanted, &callError{"update", k.resource, err}
	}
	k.wanted, k.kept = want, kept
	return became, nil
}

// satisfied reports whether a configuration is as wanted, or as the cluster stored it when it was
// last written.
func (k *keeper[T]) satisfied(live, want *T) bool {
	ours, meta := k.meta(want), k.meta(live)
	if !contains(meta.Labels, ours.Labels) || !contains(meta.Annotations, ours.Annotations) {
		return false
	}
	if equality.Semantic.DeepEqual(k.webhooks(live), k.webhooks(want)) {
		return true
	}
	return k.kept != nil && equality.Semantic.DeepEqual(k.wanted, want) &&
		equality.Semantic.DeepEqual(k.webhooks(live), k.webhooks(k.kept))
}

// remove deletes the configuration if it exists and is ours: a configuration for the same cluster
// under another name has another address.
func (k *keeper[T]) remove(ctx context.Context, path string) error {
	live, err := k.client.Get(ctx, configurationName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return &callError{"get", k.resource, err}
	}
	urls := k.urls(live)
	if len(urls) > 0 && !slices.ContainsFunc(urls, func(url string) bool { return strings.Contains(url, path+"/") }) {
		return nil
	}
	meta := k.meta(live)
	err = k.client.Delete(ctx, configurationName, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &meta.UID, ResourceVersion: &meta.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return &callError{"delete", k.resource, err}
	}
	k.wanted, k.kept = nil, nil
	return nil
}

func with(all, ours map[string]string) map[string]string {
	if all == nil {
		all = make(map[string]string, len(ours))
	}
	for key, value := range ours {
		all[key] = value
	}
	return all
}

func contains(all, ours map[string]string) bool {
	for key, value := range ours {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
