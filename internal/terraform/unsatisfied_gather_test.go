package terraform

import (
	"fmt"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Concurrent reads report all that they find in one warning, whichever ends last.
func TestUnsatisfiedIsGathered(t *testing.T) {
	u := newUnsatisfied()
	var all sync.WaitGroup
	var mu sync.Mutex
	var reports []map[api.Key]string
	ends := make([]func(), 50)
	for i := range ends {
		ends[i] = u.begin() // as many as Terraform runs concurrently
	}
	for i := range ends {
		all.Go(func() {
			ends[i]()
			text := ""
			if i%2 == 0 {
				text = "nothing fits"
			}
			key := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: fmt.Sprint(i)}
			if found := u.add(t.Context(), key, text); found != nil {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, found)
			}
		})
	}
	all.Wait()
	if len(reports) != 1 || len(reports[0]) != len(ends)/2 {
		t.Errorf("%d reports, want one: %v", len(reports), reports)
	}
	// Later findings are reported, too.
	later := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "later"}
	u.begin()()
	if found := u.add(t.Context(), later, "nothing fits"); len(found) != 1 || found[later] == "" {
		t.Errorf("a later finding is reported as %v", found)
	}
}
