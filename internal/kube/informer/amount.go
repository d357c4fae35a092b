package informer

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// Amount holds the resources that a pod requests or a node has. It is small, because there is one
// for each pod of each cluster: resources other than CPU and memory are a string that equal amounts
// share.
type Amount struct {
	MilliCPU int64
	Memory   int64                 // in bytes
	more     unique.Handle[string] // "name=number,…", by name; zero if none
}

// MaxName is the maximum length of a resource, label or type name in Kubernetes; longer ones are
// invalid.
const MaxName = 317

// AmountOf converts a resource list.
func AmountOf(list corev1.ResourceList) Amount {
	var a Amount
	var more []string
	for name, quantity := range list {
		switch {
		case name == corev1.ResourceCPU:
			a.MilliCPU = max(quantity.MilliValue(), 0)
		case name == corev1.ResourceMemory:
			a.Memory = max(quantity.Value(), 0)
		case quantity.Sign() > 0 && len(name) <= MaxName && !strings.ContainsAny(string(name), "=,"):
			more = append(more, fmt.Sprintf("%s=%d", name, quantity.Value()))
		}
	}
	if len(more) > 0 {
		slices.Sort(more)
		a.more = unique.Make(strings.Join(more, ","))
	}
	return a
}

// More yields the resources other than CPU and memory, by name.
func (a Amount) More() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if a.more == (unique.Handle[string]{}) {
			return
		}
		for rest := a.more.Value(); rest != ""; {
			var one string
			one, rest, _ = strings.Cut(rest, ",")
			name, number, _ := strings.Cut(one, "=")
			if n, err := strconv.ParseInt(number, 10, 64); err == nil && !yield(name, n) {
				return
			}
		}
	}
}
