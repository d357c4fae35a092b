package engine

// evenness prefers clusters in domains of which few are chosen; see pickSpread. Its
// weight says what that is worth where spread constraints divide the clusters.
type evenness struct{ builtin }

// Reads implements Prioritizer: the domains are those of the spread constraints, and
// what those look at they say themselves.
func (evenness) Reads() Aspects { return 0 }

func (evenness) Evens() {}
