// Package filter determines which clusters fit. Each filter compiles requirements to
// checks. A check declares what it reads and until when its answer holds.
//
// A check is one compiled requirement, such as one label constraint. Equal keys mean
// equal answers, so queries with the same checks share a mask. Some checks are more
// lenient for clusters of the current decision. Rejection and cause are the parts of the
// sentence about clusters that do not fit.
package filter
