package score

import "slices"

// Builtin is a built-in prioritizer.
type Builtin = builtin

// NewBuiltin returns the built-in prioritizer of a name.
func NewBuiltin(name string) Builtin { return builtin{name} }

// AddBuiltin adds a prioritizer to the list until takeBack is called.
func AddBuiltin(p prioritizer) (takeBack func()) {
	before := builtins
	builtins = append(slices.Clone(before), p)
	return func() { builtins = before }
}

// RatingOf rates the clusters that a query sees.
var RatingOf = rating
