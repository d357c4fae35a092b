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

	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
)

const (
	// typesEvery is how often the types of a cluster are read where nothing says
	// that they changed: an API server behind the cluster's own may serve others
	// without a word.
	typesEvery = 10 * time.Minute
	// typesApart is the least time between two readings.
	typesApart = 5 * time.Second
	// typesSettle is how long after a change they are read: the API server takes a
	// moment until it serves a type that was defined.
	typesSettle = time.Second
	// typesAgain is how long after a change they are read once more, for where it
	// takes longer.
	typesAgain = 10 * time.Second
	// maxTypes is how many types a cluster may have.
	maxTypes = 20_000
)

// served are the types of resources that a cluster serves.
type served struct {
	// byVersion has the kinds by API version.
	byVersion map[schema.GroupVersion][]string
	version   string // of Kubernetes
	err       error  // why they are not current
	known     bool
}

// readTypes reads the types that a cluster serves. Those of an API version that
// cannot be read now are taken over from before: an API server behind the
// cluster's own is down, and its types are not gone.
func (w *watcher) readTypes(ctx context.Context) error {
	ctx, leave, err := w.feed.Gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancelTimeout := context.WithTimeout(ctx, feed.AnswerWithin)
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
		if err != nil || len(list.GroupVersion) > feed.MaxName {
			continue
		}
		for _, resource := range list.APIResources {
			// A subresource is no type of its own.
			if strings.Contains(resource.Name, "/") || resource.Kind == "" || len(resource.Kind) > feed.MaxName || count == maxTypes {
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

// texts are the types as "<api version>/<kind>", sorted.
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

// followTypes reads the types whenever they may have changed, until ctx ends.
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
			wait = feed.ReadAgain.After(failures)
			if !errors.Is(err, context.Canceled) { // otherwise the probes say what is wrong
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

// awaitTypes waits until the types are to be read again.
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
		select { // what came meanwhile is answered as well
		case <-w.typesChanged:
		default:
		}
	case <-time.After(wait):
		w.again = time.Time{}
	case <-ctx.Done():
	}
	return ctx.Err()
}

// clip bounds a text that a cluster gives.
func clip(text string) string { return text[:min(len(text), feed.MaxName)] }
