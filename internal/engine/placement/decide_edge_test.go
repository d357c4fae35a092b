package placement

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

func TestAmountsAtTheEdge(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}}
	for _, tt := range []struct {
		allocatable, allocated, request api.Quantity
		fits, staysOn                   bool
	}{
		{"100P", "0", "1", true, true}, // more than an int64 of thousandths
		{"100P", "100P", "1", false, true},
		{"1", "100P", "1", false, true},
		{"1", "2", "0", true, true},
		{"1", "1", "1m", false, true},
		{"1.0001", "0", "1", true, true},
	} {
		c.Spec.Allocatable = api.Quantities{"memory": tt.allocatable}
		c.Spec.Allocated = api.Quantities{"memory": tt.allocated}
		f, _ := (&columns.Fleet{}).With(enginetest.Clusters(c), enginetest.Epoch)
		p := enginetest.NewPlacement("web")
		p.Spec.ResourceRequests = api.Quantities{"memory": tt.request}
		q := enginetest.Compile(t, NewQuery, p)
		reserved := ledger.NewReservations()
		if got := Admits(f, q, reserved, 0, false); got != tt.fits {
			t.Errorf("%+v: Admits() = %t for a new placement", tt, got)
		}
		c.Status.CapacityReportedAt = new(enginetest.Epoch)
		f, _ = (&columns.Fleet{}).With(enginetest.Clusters(c), enginetest.Epoch)
		reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch.Add(-time.Minute)) // the allocated amount includes it
		if got := Admits(f, q, reserved, 0, true); got != tt.staysOn {
			t.Errorf("%+v: Admits() = %t for a present cluster", tt, got)
		}
		c.Status.CapacityReportedAt = nil
	}
}

// Weights and stickiness may be as large as a float allows; scores must remain numbers.
func TestScoreOfHugeWeights(t *testing.T) {
	w := enginetest.NewWorld()
	w.Gauge("half", 0, 1, 0.5)
	w.Cluster("c1", map[string]float64{"half": math.MaxFloat64})
	w.Cluster("c2", map[string]float64{"half": math.MaxFloat64})
	w.Cluster("c3", nil)
	p := enginetest.NewPlacement("web")
	p.Spec.NumberOfClusters = nil
	p.Spec.Metrics.Stickiness, p.Spec.MinImprovement = new(math.MaxFloat64), math.MaxFloat64
	f, q := w.Fleet(), enginetest.Compile(t, NewQuery, p)
	e := Explain(f, q, nil, ledger.Others{}, on(w, time.Hour, "c1", "c3"), w.Now)
	for _, c := range e.Render().Candidates {
		for _, part := range c.Scores {
			if math.IsNaN(part.Share) || math.IsInf(part.Share, 0) {
				t.Errorf("%s: share of %+v is not finite", c.Cluster, part)
			}
		}
		if math.IsNaN(*c.Score) || math.IsInf(*c.Score, 0) {
			t.Errorf("score of %s is %v, want a finite number", c.Cluster, *c.Score)
		}
	}
	if got := e.Choices[0].Score; got != 0.75 {
		t.Errorf("score %v, want 0.75", got)
	}
	p.Spec.NumberOfClusters, p.Spec.LabelConstraints = new(int64(1)), []string{"plain is yes"}
	for _, name := range []string{"c3", "c4"} {
		w.Cluster(name, nil).Metadata.Labels = map[string]string{"plain": "yes"}
	}
	margin := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, on(w, time.Hour, "c3"), w.Now).Render().Margin
	if margin == nil || math.IsInf(margin.Margin, 0) {
		t.Errorf("margin %+v, want a number", margin)
	}
}

// Several seats may move in one look.
func TestAllSeatsMove(t *testing.T) {
	for _, n := range []int{20, 1000} { // looked at one by one, and walked
		w := enginetest.NewWorld()
		w.Gauge("low", 0, 1, 0.1)
		w.Gauge("high", 0, 1, 0.9)
		for i := range n {
			w.Cluster(fmt.Sprintf("low%d", i), map[string]float64{"low": 1})
		}
		for i := range 3 {
			w.Cluster(fmt.Sprintf("high%d", i), map[string]float64{"high": 1})
		}
		p := enginetest.NewPlacement("web")
		p.Spec.NumberOfClusters = new(int64(4))
		names, out := decide(t, w, p, on(w, time.Hour, "low3", "low5", "low7", "low9"))
		slices.Sort(names)
		if len(names) != 4 || !slices.Equal(names[:3], []string{"high0", "high1", "high2"}) || !slices.Contains([]string{"low3", "low5", "low7", "low9"}, names[3]) {
			t.Errorf("%d candidates: chosen %q, want the three high ones and a present low one", n, names)
		}
		if !out.hasNext || !out.Full {
			t.Errorf("%d candidates: outcome %+v, want it full, with a next cluster", n, out)
		}
	}
}

func TestDecisionThatNamesAClusterTwice(t *testing.T) {
	w := enginetest.NewWorld()
	w.Cluster("c1", nil)
	w.Cluster("c2", nil)
	p := enginetest.NewPlacement("web")
	p.Spec.NumberOfClusters = new(int64(2))
	names, out := decide(t, w, p, on(w, time.Second, "c1", "c1"))
	slices.Sort(names)
	if !slices.Equal(names, []string{"c1", "c2"}) || out.Same {
		t.Errorf("chosen %q, same %t", names, out.Same)
	}
}

// TestImprovementIsExactInDecimals checks that a cluster which is better by just min_improvement moves nothing,
// whatever its binary approximation is.
func TestImprovementIsExactInDecimals(t *testing.T) {
	for i := range 1000 {
		for _, more := range []int{1, 7, 30, 100, 333} {
			for _, unit := range []float64{10, 100, 1000} {
				score, improvement, exact := float64(i)/unit, float64(more)/unit, float64(i+more)/unit
				if got := addDecimal(score, improvement); got != exact {
					t.Fatalf("%v + %v = %v, want %v", score, improvement, got, exact)
				}
			}
		}
	}
	w := enginetest.NewWorld()
	here, there := w.Gauge("here", 0, 1, 0), w.Gauge("there", 0, 1, 0)
	w.Cluster("c1", map[string]float64{"here": 1})
	w.Cluster("c2", map[string]float64{"there": 1})
	p := enginetest.NewPlacement("web")
	p.Spec.Metrics.Stickiness, p.Spec.MinImprovement = new(0.0), 0.1
	for i := range 9 {
		here.Status.Value = new(float64(i) / 10)
		for value, want := range map[float64]string{float64(i+1) / 10: "c1", float64(i+1)/10 + 1e-9: "c2"} {
			there.Status.Value = new(value)
			if names, _ := decide(t, w, p, on(w, time.Hour, "c1")); names[0] != want {
				t.Errorf("from %v to %v: chosen %s, want %s", *here.Status.Value, value, names[0], want)
			}
		}
	}
}

// TestARequestOfZeroAsksForNothing requests none of a resource that a cluster does not report.
func TestARequestOfZeroAsksForNothing(t *testing.T) {
	w := enginetest.NewWorld()
	w.Cluster("c1", nil).Spec.Allocatable = api.Quantities{"cpu": "2"}
	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "1", "nvidia.com/gpu": "0"}
	if names, _ := decide(t, w, p, Present{}); !slices.Equal(names, []string{"c1"}) {
		t.Errorf("chosen %v, want c1", names)
	}
}
