package arktos

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// selectorBody is the selector of pods and allocations, which says where machines may be.
type selectorBody struct {
	GeoLocation       api.GeoLocation
	Regions           []selectorRegion
	Operator          string
	SiteID            string
	Strategy          strategyBody
	StackAffinity     []stackName
	StackAntiAffinity []stackName
}

type selectorRegion struct {
	Region           string
	AvailabilityZone texts
	// AvailablityZone is the misspelling in manifests of Arktos.
	AvailablityZone texts
}

type strategyBody struct {
	LocationStrategy string
	RegionStrategy   string
}

// stackName is the name of a workload. Arktos also accepts label requirements here, which are
// rejected, because it would not be recorded which workloads they select.
type stackName string

// UnmarshalJSON implements json.Unmarshaler.
func (n *stackName) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		return errors.New("must be the name of a pod or the id of an allocation: requirements of labels are not supported")
	}
	return json.Unmarshal(data, (*string)(n))
}

func stackNames(names []stackName) []string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return out
}

// allocation returns the selector with the requested flavors.
func (b *selectorBody) allocation(flavors []string) *api.AllocationSpec {
	a := &api.AllocationSpec{
		Flavors: flavors, Operator: b.Operator, SiteID: b.SiteID,
		LocationStrategy:  api.LocationStrategy(strings.ToLower(b.Strategy.LocationStrategy)),
		RegionStrategy:    api.RegionStrategy(strings.ToLower(b.Strategy.RegionStrategy)),
		StackAffinity:     stackNames(b.StackAffinity),
		StackAntiAffinity: stackNames(b.StackAntiAffinity),
	}
	if b.GeoLocation != (api.GeoLocation{}) {
		a.GeoLocation = &b.GeoLocation
	}
	for _, r := range b.Regions {
		zones := append(append([]string(nil), r.AvailabilityZone...), r.AvailablityZone...)
		a.Regions = append(a.Regions, api.AllocationRegion{Region: r.Region, AvailabilityZones: zones})
	}
	return a
}

// documentFields maps fields of a workload to their names in this API.
var documentFields = strings.NewReplacer(
	"spec.allocation.flavors", "flavors", "spec.allocation.location_strategy", "selector.strategy.location_strategy",
	"spec.allocation.region_strategy", "selector.strategy.region_strategy", "spec.allocation.stack_anti_affinity", "selector.stack_antiaffinity",
	"spec.allocation.", "selector.", "spec.replica_requests", "requests", "spec.replicas", "replicas", "metadata.", "",
)

// checked sets defaults of a workload and validates it; fields in errors are those of the document.
func checked(w *api.Workload) (*api.Workload, error) {
	w.SetDefaults()
	errs := w.Validate()
	for i := range errs {
		errs[i].Field = documentFields.Replace(errs[i].Field)
	}
	return w, errs.Err()
}

// requests are the total requested amounts, in thousandths by resource.
type requests map[string]amount.Milli

// add adds an amount times a number, which is at least 1; it returns what is wrong with the amount.
func (r requests) add(resource string, q api.Quantity, times int64) string {
	milli, err := q.Milli()
	if err != nil {
		return err.Error()
	}
	if milli.Sign() < 0 {
		return strconv.Quote(string(q)) + " must not be negative"
	}
	sum := r[resource].Plus(milli.Times(times))
	if amount.Largest.Less(sum) {
		return strconv.Quote(string(q)) + " is too much"
	}
	r[resource] = sum
	return ""
}

// quantities returns the totals, except those that are 0.
func (r requests) quantities() api.Quantities {
	var out api.Quantities
	for name, milli := range r {
		if milli == (amount.Milli{}) {
			continue
		}
		if out == nil {
			out = api.Quantities{}
		}
		out[name] = api.FormatMilli(name, milli)
	}
	return out
}
