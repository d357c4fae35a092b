package collect

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// panicking is a source that panics on a query, in its own goroutine or in the caller's.
type panicking struct {
	*backend
	beside bool
}

func (p panicking) Read(ctx context.Context, queries []string) (map[string]source.Reading, error) {
	search := source.NewSearch(ctx, "1s", &source.Patience{}, queries)
	for _, query := range queries {
		if query == "poison" && p.beside {
			search.Go(func(context.Context) { panic("over " + query) })
		} else if query == "poison" {
			panic("over " + query)
		}
	}
	if readings, err := search.Answers(); err != nil {
		return readings, err
	}
	return p.backend.Read(ctx, queries)
}

// A panic on a response costs the provider that reading, or the metric its value, and affects nothing else.
func TestPanicOnAnAnswerAffectsOnlyThatProvider(t *testing.T) {
	for name, c := range map[string]struct {
		beside, normalize bool
	}{"reading": {}, "reading beside others": {beside: true}, "the value": {normalize: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				recorder := recovery.New(nil)
				w.Faults = recorder.Component("metrics")
				w.backends["http://good"] = &backend{values: map[string]float64{"q": 0.5}}
				w.backends["http://bad"] = &backend{values: map[string]float64{"q": 0.5, "poison": 0.75}}
				open := w.Types[1].New
				w.Types[1].New = func(p *api.MetricsProvider, n *addresspolicy.Policy) (source.Source, error) {
					s, err := open(p, n)
					if err != nil || p.Metadata.Name != "bad" || c.normalize {
						return s, err
					}
					return panicking{w.backends["http://bad"], c.beside}, nil
				}
				normalize := w.Normalize
				w.Normalize = func(spec api.MetricSpec, raw float64) (float64, error) {
					if raw == 0.75 {
						panic("over 0.75")
					}
					return normalize(spec, raw)
				}
				stop := w.run()
				for _, name := range []string{"good", "bad"} {
					p := liveProvider(name)
					p.Spec.Prometheus.URL = "http://" + name
					w.put(p)
				}
				w.put(metricOf("m", "good", "q"))
				w.settle(w.put(metricOf("poison", "bad", "poison")))
				faketime.Sleep(time.Minute)
				synctest.Wait()
				w.expect("m", 0.5, api.ReasonAvailable)
				if c.normalize {
					if text := recorder.Faulted(metricKey("poison").String()); len(text) != 1 || !strings.Contains(text[0], "over 0.75") {
						t.Errorf("fault of the metric %v", text)
					}
				} else if condition := w.providerCondition("bad"); condition == nil || condition.Status != api.ConditionFalse || !strings.Contains(condition.Message, "a fault of the server: over poison") {
					t.Errorf("condition of the provider %+v", condition)
				}
				w.settle(w.remove(metricKey("poison")))
				w.settle(w.put(metricOf("other", "bad", "q")))
				w.expect("other", 0.5, api.ReasonAvailable)
				if condition := w.providerCondition("bad"); condition == nil || condition.Status != api.ConditionTrue {
					faketime.Sleep(time.Minute)
					synctest.Wait()
					if condition = w.providerCondition("bad"); condition.Status != api.ConditionTrue {
						t.Errorf("condition of the provider %+v after the recovery", condition)
					}
				}
				stop()
			})
		})
	}
}
