package api

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// PlacementScore is a set of scores of one cluster, which placements rank clusters by. It is
// written by Terraform or by an agent in the cluster.
type PlacementScore struct {
	Kind     Kind                 `json:"kind" enum:"placement_score"`
	Metadata Metadata             `json:"metadata"`
	Spec     PlacementScoreSpec   `json:"spec"`
	Status   PlacementScoreStatus `json:"status,omitzero"`
}

// PlacementScoreSpec holds the scores.
type PlacementScoreSpec struct {
	Scores     map[string]int64 `json:"scores" minimum:"-100" maximum:"100" doc:"Scores by name, each a whole number."`
	ValidUntil *time.Time       `json:"valid_until,omitempty" doc:"Time (RFC 3339) after which the scores count as 0. If omitted, they do not expire."`
}

// PlacementScoreStatus says whether the scores are valid. It is not stored, because it follows from
// the time.
type PlacementScoreStatus struct {
	Conditions []Condition `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// Bounds of a score.
const (
	MinScore = -100
	MaxScore = 100
)

// ObjectKind implements Object.
func (p *PlacementScore) ObjectKind() Kind { return KindPlacementScore }

// Meta implements Object.
func (p *PlacementScore) Meta() *Metadata { return &p.Metadata }

// SpecPart implements Object.
func (p *PlacementScore) SpecPart() any { return &p.Spec }

// StatusPart implements Object.
func (p *PlacementScore) StatusPart() any { return &p.Status }

// Copy implements Object.
func (p *PlacementScore) Copy() Object { d := *p; return &d }

// Secrets implements Object.
func (p *PlacementScore) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (p *PlacementScore) SetSecret(string, Secret) {}

// SetDefaults implements Object. A namespace in the metadata is taken as the cluster, because Open
// Cluster Management keeps the scores of a cluster in the namespace of its name.
func (p *PlacementScore) SetDefaults() {
	p.Kind = KindPlacementScore
	p.Metadata.setDefaults(OfCluster)
	if t := p.Spec.ValidUntil; t != nil {
		utc := t.UTC()
		p.Spec.ValidUntil = &utc
	}
}

// Expired reports whether the scores have expired: they are valid up to and including valid_until.
func (p *PlacementScore) Expired(now time.Time) bool {
	return p.Spec.ValidUntil != nil && now.After(*p.Spec.ValidUntil)
}

// Observed returns a copy with its status at the given time.
func (p *PlacementScore) Observed(now time.Time) *PlacementScore {
	c := *p
	valid := Condition{Type: conditionValid, Status: ConditionTrue, Reason: ReasonValid, LastTransitionAt: p.Metadata.ModifiedAt}
	if p.Expired(now) {
		valid.Status, valid.Reason, valid.LastTransitionAt = ConditionFalse, ReasonExpired, p.Spec.ValidUntil
		valid.Message = "the scores expired at " + p.Spec.ValidUntil.UTC().Format(time.RFC3339) + " and count as 0"
	}
	c.Status.Conditions = []Condition{valid}
	return &c
}

// scoreNameShape is less strict than for labels, because agents choose the names.
var scoreNameShape = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

func checkScoreName(name string) string {
	switch {
	case name == "":
		return "is required"
	case len(name) > 63 || !scoreNameShape.MatchString(name):
		return quote(name) + " must have 1 to 63 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter or digit"
	}
	return ""
}

// Validate implements Object.
func (p *PlacementScore) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(p, OfCluster)
	if p.Spec.Scores == nil {
		errs.Add("spec.scores", "is required")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Spec.Scores)) {
		errs.check("spec.scores["+quote(name)+"]", checkScoreName(name))
	}
	if t := p.Spec.ValidUntil; t != nil && (t.Year() < 1 || t.Year() > 9999) {
		errs.Add("spec.valid_until", "must be a time in the years 1 to 9999")
	}
	return errs.inOrder(p)
}
