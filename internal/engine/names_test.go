package engine

import (
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"pgregory.net/rapid"
)

// TestInNameOrder sorts names that share their beginnings, or all of them but
// the end.
func TestInNameOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`(cluster-)?(eu|us)?[0-9a-z]{0,9}(-long-and-equal)?[0-9]{0,2}`)
		changes := map[string]*api.Cluster{}
		for _, n := range rapid.SliceOfN(name, 0, 60).Draw(t, "names") {
			changes[n] = &api.Cluster{Metadata: api.Metadata{Name: n}}
		}
		got := inNameOrder(changes)
		if len(got) != len(changes) || !slices.IsSortedFunc(got, byChangedName) {
			t.Fatalf("%v is not in order", got)
		}
		for _, c := range got {
			if c.cluster != changes[c.name] {
				t.Fatalf("%q has another's cluster", c.name)
			}
		}
	})
}
