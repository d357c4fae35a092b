package api

import "maps"

// Overlay lays labels, or amounts, over others: of equal names the upper counts.
// Neither is changed; where there is nothing to lay over, the lower is returned
// itself.
func Overlay[M ~map[string]V, V any](under, over M) M {
	if len(over) == 0 {
		return under
	}
	out := make(M, len(under)+len(over))
	maps.Copy(out, under)
	maps.Copy(out, over)
	return out
}
