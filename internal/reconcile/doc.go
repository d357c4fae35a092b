// Package reconcile keeps every decision current. It follows the fleet's changes, finds the
// decisions that depend on what changed, makes them again with the engine, and writes those that
// differ. It also wakes when a decision may change through the passing of time.
//
// Each kind of object that gets decisions is a row of one table. Objects with the same requirements
// form a cohort, which shares a view of the fleet and is woken together. Stale decisions are in one
// queue.
//
// The planner has no clock and no store: given objects and a time, it returns the statuses to
// write. The reconciler runs it on the live fleet, a simulation on a copy. Readers use snapshots of
// it, one after every pass, and never wait for it. README.md has an overview.
package reconcile
