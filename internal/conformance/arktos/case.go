// Package arktos runs the decisions of the Arktos global scheduler about sites as
// test cases against this product.
package arktos

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// The groups of cases.
const (
	// FlavorCount cases ask how many machines of a flavor fit on a site.
	FlavorCount = "flavor_count"
	// SiteFilter cases ask whether a site fits.
	SiteFilter = "site_filter"
	// SiteScore cases ask for the score of a site.
	SiteScore = "site_score"
	// Strategy cases ask how replicas are divided among sites.
	Strategy = "strategy"
	// Pipeline cases ask what happens before and after a decision.
	Pipeline = "pipeline"
)

// Input is the input of a case. Its fields depend on the group.
type Input struct {
	AvailableVCPUs   conformance.Field[int64]                              `json:"available_vcpus"`
	AvailableMemory  conformance.Field[int64]                              `json:"available_mem_mb"`
	Flavors          conformance.Field[map[string]conformance.Pair[int64]] `json:"flavors"` // vCPUs and MiB
	Flavor           conformance.Field[*conformance.Pair[int64]]           `json:"flavor"`
	NoCapacityPushed conformance.Field[bool]                               `json:"no_capacity_pushed_yet"`
	Registered       conformance.Field[map[string]int64]                   `json:"registered"`
	Bind             conformance.Field[string]                             `json:"bind"`
	Binds            conformance.Field[int64]                              `json:"binds"`
	Push             conformance.Field[*push]                              `json:"push"`

	Plugin           conformance.Field[string]           `json:"plugin"`
	Status           conformance.Field[string]           `json:"status"`
	SiteID           conformance.Field[string]           `json:"selector.site_id"`
	Site             conformance.Field[json.RawMessage]  `json:"site"` // an ID, or a region and a zone
	Regions          conformance.Field[[]region]         `json:"regions"`
	Resources        conformance.Field[[]resource]       `json:"resources"`
	Allocatable      conformance.Field[map[string]int64] `json:"allocatable"` // machines by flavor
	Request          conformance.Field[map[string]int64] `json:"request"`     // GB by volume type
	Count            conformance.Field[int64]            `json:"count"`
	Total            conformance.Field[map[string]int64] `json:"total"`
	Used             conformance.Field[map[string]int64] `json:"used"`
	ExclusiveDomains conformance.Field[string]           `json:"exclusive_domains"`
	Domain           conformance.Field[string]           `json:"domain"`
	Alternatives     conformance.Field[[]int64]          `json:"chosen_alternative_per_resource"`
	Affinity         conformance.Field[string]           `json:"affinity"`
	AntiAffinity     conformance.Field[string]           `json:"anti_affinity"`
	Capacity         conformance.Field[map[string]int64] `json:"capacity"`
	Requested        conformance.Field[map[string]int64] `json:"requested"`

	Strategy       conformance.Field[string]             `json:"strategy"`
	RegionStrategy conformance.Field[string]             `json:"region_strategy"`
	Replicas       conformance.Field[int64]              `json:"replicas"`
	Ranked         conformance.Field[[]ranked]           `json:"ranked"`
	Sites          conformance.Field[map[string][]int64] `json:"sites"` // capacity by region
	RequestStorage conformance.Field[map[string]int64]   `json:"request_storage"`
	StorageTotal   conformance.Field[map[string]int64]   `json:"site_storage_total"`

	Retried conformance.Field[bool] `json:"pod_unschedulable_then_capacity_pushed"`
}

type push struct {
	VCPUs  conformance.Field[int64] `json:"vcpus"`
	Memory conformance.Field[int64] `json:"mem_mb"`
}

type region struct {
	Region conformance.Field[string] `json:"region"`
}

type resource struct {
	Count   conformance.Field[int64]    `json:"count"`
	Flavors conformance.Field[[]string] `json:"flavors"`
}

// ranked is a site and the number of replicas that fit there. The best comes first.
type ranked struct {
	site string
	room int64
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *ranked) UnmarshalJSON(data []byte) error {
	var pair conformance.Pair[json.RawMessage]
	if err := json.Unmarshal(data, &pair); err != nil {
		return fmt.Errorf("read a site and its room: %w", err)
	}
	for i, into := range []any{&r.site, &r.room} {
		if err := json.Unmarshal(pair[i], into); err != nil {
			return fmt.Errorf("read a site and its room: %w", err)
		}
	}
	return nil
}

// Output is the expected result.
type Output struct {
	Pass      *bool    `json:"pass"`
	Score     *float64 `json:"score"`
	MaxStacks *int64   `json:"max_stacks"`
	Error     string   `json:"error"`
	Region    string   `json:"region"`
	Retried   *bool    `json:"retried"`
	Count     string   `json:"count"`

	// counts are numbers by flavor or site, if the case has those.
	counts map[string]int64
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Output) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &o.counts) == nil && !known(o.counts) {
		return nil
	}
	type plain Output
	*o = Output{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*plain)(o)); err != nil {
		return fmt.Errorf("read what is expected: %w", err)
	}
	return nil
}

// known reports whether the numbers are fields of the expectation itself.
func known(counts map[string]int64) bool {
	_, score := counts["score"]
	return score
}
