package engine

import (
	"fmt"
	"time"
)

// addonScore is a score of the clusters' placement scores, as it is: 0 where a
// cluster has none or it has expired.
type addonScore struct{ resource, score string }

func (a addonScore) Name() string { return a.resource + "/" + a.score }

func (a addonScore) figures(f *Fleet) figures {
	return figures{scores: f.scoreColumn(a.resource, a.score)}
}

func (addonScore) rate(_ *Fleet, from *figures, _ *span, row int) float64 {
	if row < len(from.scores) {
		return float64(from.scores[row])
	}
	return 0
}

func (a addonScore) observe(f *Fleet, _ *figures, row int) observation {
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
