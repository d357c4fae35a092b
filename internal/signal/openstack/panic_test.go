package openstack

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// poisonedStack panics on one document.
type poisonedStack struct {
	http.RoundTripper
	path   string
	broken atomic.Bool
}

func (p *poisonedStack) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.broken.Load() && strings.Contains(r.URL.Path, p.path) {
		panic("over a document")
	}
	return p.RoundTripper.RoundTrip(r)
}

// A panic on a document of a cloud counts as a failure of that cloud.
func TestPanicOnADocumentAffectsOnlyThatCloud(t *testing.T) {
	for _, document := range []string{"os-aggregates", "inventories", "tokens"} {
		t.Run(document, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, newRecorded(t))
				stack := &poisonedStack{RoundTripper: w.stack, path: document}
				stack.broken.Store(true)
				recorder := recovery.New(nil)
				w.RoundTripper, w.Faults = stack, recorder.Component("openstack")
				w.running.Faults = w.Faults
				w.start()
				w.put("paris", access())
				faketime.Sleep(3 * time.Minute)
				synctest.Wait()
				condition := api.FindCondition(w.status("paris").Conditions, api.ConditionCollected)
				faulted := recorder.Faulted(cloudKey("paris"))
				if len(faulted) == 0 && (condition == nil || condition.Status != api.ConditionFalse || !strings.Contains(condition.Message, "a fault of the server: over a document")) {
					t.Errorf("condition %+v, faults %v", condition, faulted)
				}
				stack.broken.Store(false)
				faketime.Sleep(5 * time.Minute)
				synctest.Wait()
				w.expectCollected("paris", isCurrent)
			})
		})
	}
}
