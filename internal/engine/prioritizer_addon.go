package engine

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

func (addonScore) raw(*Fleet, *figures, int) *float64 { return nil }
