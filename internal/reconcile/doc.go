// Package reconcile keeps every decision current. It follows the fleet's
// changes, finds the decisions that depend on what changed, makes them again
// with the engine, and writes those that differ, leaving everything else
// untouched. It also wakes at the instants at which time alone changes a
// decision.
//
// Every kind of objects that is decided is a row of one table. Those who ask the
// same of clusters form a cohort, which shares a view of the fleet and is woken
// together; what is stale stands in one queue.
//
// The planner is the part without a clock or a store: given objects and a
// moment it says which statuses to write. The reconciler drives it with the live
// fleet, a simulation with a copy. Readers get
// snapshots of it, one after every pass, and never wait for it. README.md shows the whole
// in one screen.
package reconcile
