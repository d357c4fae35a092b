package score

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// addonScore uses a score of the clusters' placement scores unchanged. It is 0 if a cluster has
// none or it has expired.
type addonScore struct{ resource, score string }

// Name implements prioritizer.
func (a addonScore) Name() string { return a.resource + "/" + a.score }

// Key implements prioritizer.
func (a addonScore) Key(k key.Writer) {
	k.Text("resource", a.resource)
	k.Text("score", a.score)
}

// Reads implements prioritizer.
func (addonScore) Reads() columns.Aspects { return columns.ScoreValues }

// Lookup implements columnar.
func (a addonScore) Lookup(f *columns.Fleet) lookup {
	return lookup{scores: f.ScoreColumn(a.resource, a.score)}
}

// Rate implements rater.
func (addonScore) Rate(r *Rating, i, row int) float64 {
	if scores := r.lookups[i].scores; row < len(scores) {
		return float64(scores[row])
	}
	return 0
}

// Expired implements perishing.
func (a addonScore) Expired(f *columns.Fleet) (what string, on *columns.RowSet) {
	return a.resource, f.Expired(a.resource)
}

// Until implements perishing.
func (a addonScore) Until(f *columns.Fleet, row int) time.Time {
	return f.Expiry(a.resource, a.score, row)
}

// Observe implements observable.
func (a addonScore) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	return a.Rate(r, i, row), a.observe(r.Fleet, row)
}

func (a addonScore) observe(f *columns.Fleet, row int) observation {
	object := f.PlacementScores()[a.resource].Object(row)
	value, has, expired := f.ScoreState(a.resource, a.score, row)
	switch {
	case object == nil:
		return observation{reason: fmt.Sprintf("absent: the cluster has no placement score %q; counts as 0", a.resource)}
	case !has:
		return observation{reason: fmt.Sprintf("absent: the placement score %q has no score %q; counts as 0", a.resource, a.score)}
	}
	raw := float64(value)
	o := observation{raw: &raw}
	if expired {
		at := object.Spec.ValidUntil.UTC() // one without valid_until never expires
		o.expiredAt, o.reason = &at, "expired since "+at.Format(time.RFC3339)+"; counts as 0"
	}
	return o
}
