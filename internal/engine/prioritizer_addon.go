package engine

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// addonScore is a score of the clusters' placement scores, as it is: 0 where a
// cluster has none or it has expired.
type addonScore struct{ resource, score string }

func (a addonScore) Name() string { return a.resource + "/" + a.score }

func (a addonScore) Key(k *Key) {
	k.Text("type", string(api.PrioritizerAddon))
	k.Text("resource", a.resource)
	k.Text("score", a.score)
}

func (addonScore) Reads() Aspects { return ScoreValues }

func (a addonScore) Figures(f *Fleet) figures {
	return figures{scores: f.scoreColumn(a.resource, a.score)}
}

func (addonScore) Rate(r *Rating, i, row int) float64 {
	if scores := r.figures[i].scores; row < len(scores) {
		return float64(scores[row])
	}
	return 0
}

func (a addonScore) Expired(f *Fleet) (what string, on *rowSet) {
	return a.resource, f.expired(a.resource)
}

func (a addonScore) Until(f *Fleet, row int) time.Time { return f.expiry(a.resource, a.score, row) }

func (a addonScore) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	return a.Rate(r, i, row), a.observe(r.fleet, row)
}

func (a addonScore) observe(f *Fleet, row int) observation {
	object := f.scores[a.resource].object(row)
	value, has, expired := f.scoreState(a.resource, a.score, row)
	switch {
	case object == nil:
		return observation{reason: fmt.Sprintf("absent: the cluster has no placement score %q; counts as 0", a.resource)}
	case !has:
		return observation{reason: fmt.Sprintf("absent: the placement score %q has no score %q; counts as 0", a.resource, a.score)}
	}
	raw := float64(value)
	o := observation{raw: &raw}
	if expired {
		at := object.Spec.ValidUntil.UTC() // one without never expires
		o.expiredAt, o.reason = &at, "expired since "+at.Format(time.RFC3339)+"; counts as 0"
	}
	return o
}
