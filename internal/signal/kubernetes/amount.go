package kubernetes

import (
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
)

// totals are sums by resource.
type totals map[string]amount.Milli

// newTotals contains what every cluster has, to distinguish 0 from unknown.
func newTotals() totals { return totals{api.ResourceCPU: {}, api.ResourceMemory: {}} }

func (t totals) add(a informer.Amount) {
	t[api.ResourceCPU] = t[api.ResourceCPU].Plus(amount.Of(a.MilliCPU))
	t.addUnits(api.ResourceMemory, a.Memory)
	for name, n := range a.More() {
		t.addUnits(name, n)
	}
}

func (t totals) addUnits(name string, n int64) { t[name] = t[name].Plus(amount.Units(n)) }

// quantities leaves out what is more than a quantity can be: it is not known.
func (t totals) quantities() api.Quantities {
	out := make(api.Quantities, len(t))
	for name, sum := range t {
		if !amount.Largest.Less(sum) {
			out[name] = quantity(name, sum)
		}
	}
	return out
}

// quantity returns a sum in the notation of its resource: a count without a suffix.
func quantity(name string, sum amount.Milli) api.Quantity {
	if units := sum.Units(); !api.IsBytes(name) && amount.Units(units) == sum {
		return api.Quantity(strconv.FormatInt(units, 10))
	}
	return api.FormatMilli(name, sum)
}
