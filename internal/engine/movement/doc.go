// Package movement decides how a decision gets from what stands to what is meant. It comes between
// the engine's outcome and a status, for placements and workloads alike, in live passes, simulations,
// previews and explanations. It is pure: the time is an argument.
//
// Holding comes first: whether a decision that would move may move now, what windows, budgets and
// freezes hold, and until when. A move leaves a cluster that still fits for another one, or takes a
// further cluster although nobody asked for a certain number. Nothing else is held: neither what a
// decision must leave, nor what takes its place, nor what the spec of the object asks for.
//
// Staging comes second: a decision of several clusters changes in steps.
package movement
