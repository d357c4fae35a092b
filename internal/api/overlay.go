package api

import "maps"

// Overlay merges two maps; over takes precedence. Neither is modified. If over is empty, under
// itself is returned.
func Overlay[M ~map[string]V, V any](under, over M) M {
	if len(over) == 0 {
		return under
	}
	out := make(M, len(under)+len(over))
	maps.Copy(out, under)
	maps.Copy(out, over)
	return out
}
