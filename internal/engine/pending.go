package engine

import "time"

func (p *Pass) tolerated(int) time.Time { return time.Time{} }
func (p *Pass) demotedRows() Bitmap     { return nil }

func (p *Pass) demoted(int) bool { return false }

// ReadsValues is x.
func (q *Query) ReadsValues() bool { return q.HasMetricConstraints() }
