package kubernetes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
)

const (
	// typesEvery is how often the API resource types are read without a trigger: an aggregated API
	// server may change its types without notice.
	typesEvery = 10 * time.Minute
	// typesApart is the minimum interval between readings.
	typesApart = 5 * time.Second
	// typesSettle is the delay of a reading after a change: the API server needs a moment to serve
	// a newly defined type.
	typesSettle = time.Second
	// typesAgain is when types are read once more after a change, in case it takes longer.
	typesAgain = 10 * time.Second
	// maxTypes is the maximum number of types of a cluster.
	maxTypes = 20_000
)

// served are the API resource types of a cluster.
type served struct {
	// byVersion holds the kinds by API version.
	byVersion map[schema.GroupVersion][]string
	version   string // of Kubernetes
	err       error  // why they are not current
	known     bool
}

// readTypes reads the API resource types of a cluster. If an API version cannot be read, its
// previous types are kept: an aggregated API server is down, but its types are not gone.
func (w *watcher) readTypes(ctx context.Context) error {
	ctx, leave, err := w.informer.Gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancelTimeout := context.WithTimeout(ctx, informer.AnswerWithin)
	defer cancelTimeout()
	version, err := w.client.discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return err
	}
	_, lists, err := w.client.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !partial {
		return err
	}
	found := kinds(lists)
	w.mu.Lock()
	defer w.mu.Unlock()
	if partial {
		for gv := range failed.Groups {
			if before := w.types.byVersion[gv]; found[gv] == nil && before != nil {
				found[gv] = before
			}
		}
	}
	w.types = served{byVersion: found, version: clip(version.GitVersion), known: true}
	return nil
}

func kinds(lists []*metav1.APIResourceList) map[schema.GroupVersion][]string {
	found := map[schema.GroupVersion][]string{}
	count := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || len(list.GroupVersion) > informer.MaxName {
			continue
		}
		for _, resource := range list.APIResources {
			// A subresource is not a type.
			if strings.Contains(resource.Name, "/") || resource.Kind == "" || len(resource.Kind) > informer.MaxName || count == maxTypes {
				continue
			}
			if !slices.Contains(found[gv], resource.Kind) {
				found[gv] = append(found[gv], resource.Kind)
				count++
			}
		}
	}
	return found
}

// texts returns the types as "<api version>/<kind>", sorted.
func (t served) texts() []string {
	out := []string{}
	for gv, kinds := range maps.All(t.byVersion) {
		for _, kind := range kinds {
			out = append(out, gv.String()+"/"+kind)
		}
	}
	slices.Sort(out)
	return out
}

// followTypes reads the types whenever they may have changed, until ctx is done.
func (w *watcher) followTypes(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		err := w.readTypes(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := typesEvery
		if err != nil {
			failures++
			wait = informer.ReadAgain.After(failures)
			if !errors.Is(err, context.Canceled) { // otherwise the probes report the problem
				w.failTypes(err)
			}
		} else {
			failures = 0
		}
		w.changed()
		if err := w.awaitTypes(ctx, wait); err != nil {
			return
		}
	}
}

func (w *watcher) failTypes(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.types.err = err
}

// awaitTypes waits until the types must be read again.
func (w *watcher) awaitTypes(ctx context.Context, wait time.Duration) error {
	read := time.Now()
	if !w.again.IsZero() {
		wait = min(wait, max(w.again.Sub(read), 0))
	}
	select {
	case <-w.typesChanged:
		w.again = time.Now().Add(typesAgain)
		select {
		case <-time.After(max(typesSettle, typesApart-time.Since(read))):
		case <-ctx.Done():
			return ctx.Err()
		}
		select { // this also covers triggers that came in the meantime
		case <-w.typesChanged:
		default:
		}
	case <-time.After(wait):
		w.again = time.Time{}
	case <-ctx.Done():
	}
	return ctx.Err()
}

// clip limits the length of text from a cluster.
func clip(text string) string { return text[:min(len(text), informer.MaxName)] }
