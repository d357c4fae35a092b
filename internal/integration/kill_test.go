//go:build integration

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

const (
	kills        = 20
	writers      = 16
	perWriter    = 8 // placements that each writer writes in turn
	untouched    = 50
	writtenLabel = "written"
	mostWrites   = 160 // acknowledged before a kill
)

// acknowledgement is the last response that a writer got for a placement, and its unanswered write when the server was
// killed.
type acknowledgement struct {
	placement *api.Placement
	inFlight  int // the number of the unanswered write; 0 = none
}

// TestKillLosesNoDataAndMovesNoPlacement kills the server repeatedly during many writes.
func TestKillLosesNoDataAndMovesNoPlacement(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startServer(t, dir)
	staticFleet(p, 5)
	for i := range untouched {
		put(p, placement(fmt.Sprintf("untouched-%d", i), "static"))
	}
	before := p.objects()
	acknowledged := map[string]*acknowledgement{}
	var mu sync.Mutex
	next := 0
	writes, restarts := 0, []time.Duration{}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range kills {
		var running sync.WaitGroup
		enough := writes + random.IntN(mostWrites)
		for w := range writers {
			running.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprintf("w%d-%d", w, i%perWriter)
					mu.Lock()
					next++
					number := next
					a := acknowledged[name]
					if a == nil {
						a = &acknowledgement{}
						acknowledged[name] = a
					}
					a.inFlight = number
					mu.Unlock()
					object := placement(name, "static")
					object.Metadata.Labels = map[string]string{writtenLabel: strconv.Itoa(number)}
					object.SetDefaults()
					stored, err := p.client.Put(context.Background(), object, client.PutOptions{})
					if err != nil {
						return // the server has been killed
					}
					mu.Lock()
					a.placement, a.inFlight = stored.(*api.Placement), 0
					writes++
					mu.Unlock()
				}
			})
		}
		eventually.True(t, "writes are acknowledged", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return writes >= enough
		})
		p.kill()
		running.Wait()

		began := time.Now()
		p = startServer(t, dir)
		restarts = append(restarts, time.Since(began))
		after := p.objects()
		for key, was := range before {
			if is := after[key]; !reflect.DeepEqual(was, is) {
				t.Fatalf("round %d: the restart changed %s from\n%+v to\n%+v", round, key, was, is)
			}
		}
		for name, a := range acknowledged {
			checkAcknowledged(t, round, name, a, after[placementKey(name)])
			if a.placement != nil {
				a.placement = decided(p, a.placement)
			}
		}
	}
	if writes < kills*writers {
		t.Fatalf("only %d writes were acknowledged: the test checked too little", writes)
	}
	var longest time.Duration
	for _, d := range restarts {
		longest = max(longest, d)
	}
	t.Logf("%d kills, %d acknowledged writes, none lost; longest restart until ready %s", kills, writes, longest)
}

// decided waits for the decision about a placement that was written, but not decided, when the server was killed.
func decided(p *process, last *api.Placement) *api.Placement {
	p.t.Helper()
	eventually.True(p.t, "the placement is decided", func() bool {
		if last.Status.ObservedGeneration == last.Metadata.Generation {
			return true
		}
		last = get[*api.Placement](p, api.KeyOf(last))
		return false
	})
	return last
}

// checkAcknowledged compares what exists after a restart with the last response.
func checkAcknowledged(t *testing.T, round int, name string, a *acknowledgement, found api.Object) {
	t.Helper()
	is, ok := found.(*api.Placement)
	if !ok {
		if a.placement != nil {
			t.Fatalf("round %d: %s was acknowledged, but does not exist", round, name)
		}
		a.inFlight = 0
		return
	}
	number, err := strconv.Atoi(is.Metadata.Labels[writtenLabel])
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case a.inFlight != 0 && number == a.inFlight:
		// Written, and killed before the response.
	case a.placement == nil:
		t.Fatalf("round %d: %s has number %d, which was never written", round, name, number)
	case strconv.Itoa(number) != a.placement.Metadata.Labels[writtenLabel]:
		t.Fatalf("round %d: %s has number %d, but %s was acknowledged", round, name, number, a.placement.Metadata.Labels[writtenLabel])
	case !reflect.DeepEqual(is, a.placement):
		t.Fatalf("round %d: the restart changed %s from\n%+v to\n%+v", round, name, a.placement, is)
	}
	a.placement, a.inFlight = is, 0
}
