package httpapi

import (
	"fmt"
	"math/big"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// TestAmountsOfAllMagnitudesThroughTheAPI writes random amounts, reads them back as they were written, and compares what the
// server makes of them with big integers, before and after the server is started again.
func TestAmountsOfAllMagnitudesThroughTheAPI(t *testing.T) {
	options := store.Options{DataDir: t.TempDir(), NoFsync: true}
	type cluster struct {
		allocatable, allocated api.Quantities
		available              *big.Int // of memory, in thousandths
	}
	written := map[string]cluster{}
	t.Run("written", func(t *testing.T) {
		s := startEndToEnd(t, options)
		i := 0
		rapid.Check(t, func(t *rapid.T) {
			quantity := func(what string) (api.Quantity, *big.Int) {
				n := rapid.Uint64().Draw(t, what) >> (64 - rapid.IntRange(0, 63).Draw(t, what+" bits"))
				suffix := rapid.SampledFrom([]string{"", "m", "k", "Ki", "Mi", "Gi", "G", "T", "Ti", "P", "Pi"}).Draw(t, "suffix")
				q := api.Quantity(fmt.Sprint(n, suffix))
				for { // a shorter number, until it can be represented
					milli, err := q.Milli()
					if err == nil {
						exact, _ := new(big.Int).SetString(milli.String(), 10)
						return q, exact
					}
					a := s.do(http.MethodPut, "/v1/clusters/refused", fmt.Sprintf(`{"spec":{"allocatable":{"memory":%q}}}`, q))
					if a.StatusCode != http.StatusUnprocessableEntity {
						t.Fatalf("%s is answered with %d: %s", q, a.StatusCode, a.Body)
					}
					n >>= 8
					q = api.Quantity(fmt.Sprint(n, suffix))
				}
			}
			name := fmt.Sprint("c", i)
			i++
			allocatable, has := quantity("allocatable")
			allocated, taken := quantity("allocated")
			left := new(big.Int).Sub(has, taken)
			if left.Sign() < 0 {
				left.SetInt64(0)
			}
			written[name] = cluster{api.Quantities{"memory": allocatable}, api.Quantities{"memory": allocated}, left}
			s.mustPut("/v1/clusters/"+name, fmt.Sprintf(`{"spec":{"allocatable":{"memory":%q},"allocated":{"memory":%q}}}`, allocatable, allocated))
		})
	})
	t.Run("read", func(t *testing.T) {
		s := startEndToEnd(t, options)
		for name, c := range written {
			var o api.Cluster
			eventually.True(t, name+" is observed", func() bool { // the reconciler has just started
				o = decodeAs[api.Cluster](t, s.do(http.MethodGet, "/v1/clusters/"+name, ""))
				return o.Status.Available["memory"] != ""
			})
			if got, want := operation.EncodeJSON(o.Spec.Allocatable), operation.EncodeJSON(c.allocatable); string(got) != string(want) {
				t.Errorf("%s: allocatable %s, want %s", name, got, want)
			}
			if got, want := operation.EncodeJSON(o.Spec.Allocated), operation.EncodeJSON(c.allocated); string(got) != string(want) {
				t.Errorf("%s: allocated %s, want %s", name, got, want)
			}
			if got, err := o.Status.Available["memory"].Milli(); err != nil || got.String() != c.available.String() {
				t.Errorf("%s: %s of %s is available as %s, want %s thousandths (%v)",
					name, c.allocatable["memory"], c.allocated["memory"], o.Status.Available["memory"], c.available, err)
			}
		}
	})
}
