package score

import "slices"

// Builtin is what is built in under a name.
type Builtin = builtin

// NewBuiltin is one of a name.
func NewBuiltin(name string) Builtin { return builtin{name} }

// AddBuiltin adds a line to the list until the test takes it back.
func AddBuiltin(p prioritizer) (takeBack func()) {
	before := builtins
	builtins = append(slices.Clone(before), p)
	return func() { builtins = before }
}

// RatingOf is how clusters are rated by who sees them.
var RatingOf = rating
