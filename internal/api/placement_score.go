package api

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// PlacementScore is a bundle of scores of one cluster, which placements rank
// clusters by. Terraform writes it, or an agent of the cluster.
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

// PlacementScoreStatus says whether the scores count. It is not stored: it
// follows from the clock.
type PlacementScoreStatus struct {
	Conditions []Condition `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// The bounds of a score.
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

// SetDefaults implements Object. A namespace in the metadata is read as the
// cluster: that is where Open Cluster Management keeps a cluster's scores.
func (p *PlacementScore) SetDefaults() {
	p.Kind = KindPlacementScore
	p.Metadata.setDefaults(OfCluster)
	if t := p.Spec.ValidUntil; t != nil {
		utc := t.UTC()
		p.Spec.ValidUntil = &utc
	}
}

// Expired reports whether the scores no longer count: they are valid up to and
// including valid_until.
func (p *PlacementScore) Expired(now time.Time) bool {
	return p.Spec.ValidUntil != nil && now.After(*p.Spec.ValidUntil)
}

// Observed is a copy with the status of a moment.
func (p *PlacementScore) Observed(now time.Time) *PlacementScore {
	c := *p
	valid := Condition{Type: ConditionValid, Status: ConditionTrue, Reason: ReasonValid, LastTransitionAt: p.Metadata.ModifiedAt}
	if p.Expired(now) {
		valid.Status, valid.Reason, valid.LastTransitionAt = ConditionFalse, ReasonExpired, p.Spec.ValidUntil
		valid.Message = "the scores expired at " + p.Spec.ValidUntil.UTC().Format(time.RFC3339) + " and count as 0"
	}
	c.Status.Conditions = []Condition{valid}
	return &c
}

// scoreNameShape is looser than a label: agents name scores as they like.
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
