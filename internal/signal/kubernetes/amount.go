package kubernetes

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
)

// totals are sums by resource; CPU in thousandths.
type totals map[string]int64

// newTotals contains what every cluster has, to distinguish 0 from unknown.
func newTotals() totals { return totals{api.ResourceCPU: 0, api.ResourceMemory: 0} }

func (t totals) add(a feed.Amount) {
	t.addTo(api.ResourceCPU, a.MilliCPU)
	t.addTo(api.ResourceMemory, a.Memory)
	for name, n := range a.More() {
		t.addTo(name, n)
	}
}

// addTo adds with saturation.
func (t totals) addTo(name string, n int64) {
	if sum := t[name] + n; sum >= t[name] {
		t[name] = sum
	} else {
		t[name] = math.MaxInt64
	}
}

func (t totals) quantities() api.Quantities {
	out := make(api.Quantities, len(t))
	for name, n := range t {
		out[name] = quantity(name, n)
	}
	return out
}

// quantity returns a sum in the notation of its resource.
func quantity(name string, n int64) api.Quantity {
	switch {
	case name == api.ResourceCPU && n%1000 != 0:
		return api.Quantity(strconv.FormatInt(n, 10) + "m")
	case name == api.ResourceCPU:
		n /= 1000
	case name == api.ResourceMemory || name == string(corev1.ResourceEphemeralStorage) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
		return api.Quantity(resource.NewQuantity(n, resource.BinarySI).String())
	}
	return api.Quantity(strconv.FormatInt(n, 10))
}
