package kubernetes

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// amount is how much of each resource a pod asks for or a node has. It is small,
// as there is one for each pod of each cluster: what is neither CPU nor memory
// is a text that equal amounts share.
type amount struct {
	cpu    int64  // in thousandths
	memory int64  // in bytes
	more   string // "name=number,…", by name
}

// maxName is the longest name that Kubernetes gives a resource, label or type;
// a longer one is no cluster's.
const maxName = 317

func amountOf(list corev1.ResourceList) amount {
	var a amount
	var more []string
	for name, quantity := range list {
		switch {
		case name == corev1.ResourceCPU:
			a.cpu = max(quantity.MilliValue(), 0)
		case name == corev1.ResourceMemory:
			a.memory = max(quantity.Value(), 0)
		case quantity.Sign() > 0 && len(name) <= maxName && !strings.ContainsAny(string(name), "=,"):
			more = append(more, fmt.Sprintf("%s=%d", name, quantity.Value()))
		}
	}
	if len(more) > 0 {
		slices.Sort(more)
		a.more = unique.Make(strings.Join(more, ",")).Value()
	}
	return a
}

// totals are sums by resource; CPU in thousandths.
type totals map[string]int64

// newTotals names what every cluster has, so that zero is told apart from not
// known.
func newTotals() totals { return totals{api.ResourceCPU: 0, api.ResourceMemory: 0} }

func (t totals) add(a amount) {
	t.addTo(api.ResourceCPU, a.cpu)
	t.addTo(api.ResourceMemory, a.memory)
	for a.more != "" {
		var one string
		one, a.more, _ = strings.Cut(a.more, ",")
		name, number, _ := strings.Cut(one, "=")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			t.addTo(name, n)
		}
	}
}

// addTo adds, and stays at the largest number where the sum is above it.
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

// quantity is a sum in the notation that fits its resource.
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
