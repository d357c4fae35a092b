// Package arktostest holds what the global scheduler of Arktos decides about
// sites, as cases that tests lay before whatever decides here.
package arktostest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed arktos.json
var observed []byte

// The groups of cases.
const (
	// FlavorCount is how many machines of a flavor a site has room for.
	FlavorCount = "flavor_count"
	// SiteFilter is whether a site fits.
	SiteFilter = "site_filter"
	// SiteScore is how good a site is.
	SiteScore = "site_score"
	// Strategy is how replicas are shared by sites.
	Strategy = "strategy"
	// Pipeline is what happens around a decision.
	Pipeline = "pipeline"
)

// Case is one case in the terms of Arktos. Which fields it has depends on its
// group.
type Case struct {
	ID    string `json:"id"`
	Group string `json:"grp"`
	Note  string `json:"note"`
	In    Input  `json:"in"`
	Out   Output `json:"-"`
	// Raw is Out as it is written: in some cases its fields are names of flavors or
	// sites.
	Raw map[string]json.RawMessage `json:"out"`
}

// Input is what a case is about.
type Input struct {
	AvailableVCPUs   int64               `json:"available_vcpus"`
	AvailableMemory  int64               `json:"available_mem_mb"`
	Flavors          map[string][2]int64 `json:"flavors"` // vCPUs and MiB
	Flavor           *[2]int64           `json:"flavor"`
	NoCapacityPushed bool                `json:"no_capacity_pushed_yet"`
	Registered       map[string]int64    `json:"registered"`
	Bind             string              `json:"bind"`
	Binds            int64               `json:"binds"`
	Push             *struct {
		VCPUs  int64 `json:"vcpus"`
		Memory int64 `json:"mem_mb"`
	} `json:"push"`

	Plugin           string           `json:"plugin"`
	Status           string           `json:"status"`
	SiteID           string           `json:"selector.site_id"`
	Site             json.RawMessage  `json:"site"` // an id, or a region and a zone
	Regions          []region         `json:"regions"`
	Resources        []resource       `json:"resources"`
	Allocatable      map[string]int64 `json:"allocatable"` // machines by flavor
	Request          map[string]int64 `json:"request"`     // GB by volume type
	Count            int64            `json:"count"`
	Total            map[string]int64 `json:"total"`
	Used             map[string]int64 `json:"used"`
	ExclusiveDomains string           `json:"exclusive_domains"`
	Domain           string           `json:"domain"`
	Alternatives     []int64          `json:"chosen_alternative_per_resource"`
	Affinity         string           `json:"affinity"`
	AntiAffinity     string           `json:"anti_affinity"`
	Capacity         map[string]int64 `json:"capacity"`
	Requested        map[string]int64 `json:"requested"`

	Strategy       string             `json:"strategy"`
	RegionStrategy string             `json:"region_strategy"`
	Replicas       int64              `json:"replicas"`
	Ranked         []ranked           `json:"ranked"`
	Sites          map[string][]int64 `json:"sites"` // room by region
	RequestStorage map[string]int64   `json:"request_storage"`
	StorageTotal   map[string]int64   `json:"site_storage_total"`

	Retried      bool `json:"pod_unschedulable_then_capacity_pushed"`
	Unregistered bool `json:"push_for_unregistered_region_then_schedule"`
}

type region struct {
	Region string `json:"region"`
}

type resource struct {
	Count   int64    `json:"count"`
	Flavors []string `json:"flavors"`
}

// ranked is a site and for how many replicas it has room; the best comes first.
type ranked struct {
	site string
	room int64
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *ranked) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &[]any{&r.site, &r.room}); err != nil {
		return fmt.Errorf("read a site and its room: %w", err)
	}
	return nil
}

// Output is what is expected.
type Output struct {
	Pass      *bool    `json:"pass"`
	Score     *float64 `json:"score"`
	MaxStacks *int64   `json:"max_stacks"`
	Error     string   `json:"error"`
	Region    string   `json:"region"`
	Retried   bool     `json:"retried"`
	Count     string   `json:"count"`
	Scheduler string   `json:"scheduler"`
}

// Cases reads the cases. An input that is not known is an error: what is not read
// is not compared.
func Cases() ([]Case, error) {
	var file struct {
		Count int    `json:"count"`
		Cases []Case `json:"cases"`
	}
	decoder := json.NewDecoder(bytes.NewReader(observed))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("read the cases: %w", err)
	}
	if len(file.Cases) != file.Count {
		return nil, fmt.Errorf("read the cases: there are %d, and the file says %d", len(file.Cases), file.Count)
	}
	for i := range file.Cases {
		if err := file.Cases[i].readOutput(); err != nil {
			return nil, err
		}
	}
	return file.Cases, nil
}

func (c *Case) readOutput() error {
	raw, err := json.Marshal(c.Raw)
	if err == nil {
		err = json.Unmarshal(raw, &c.Out)
	}
	if err != nil {
		return fmt.Errorf("case %s: read what is expected: %w", c.ID, err)
	}
	return nil
}

// counts are the numbers that a case expects by name of a flavor or site.
func (c *Case) counts() (map[string]int64, error) {
	out := map[string]int64{}
	for name, raw := range c.Raw {
		var n int64
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, fmt.Errorf("case %s: %q is no number: %w", c.ID, name, err)
		}
		out[name] = n
	}
	return out, nil
}
