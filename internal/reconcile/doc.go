// Package reconcile keeps every decision current. It follows the fleet's
// changes, finds the decisions that depend on what changed, makes them again
// with the engine, and writes those that differ, leaving everything else
// untouched. It also wakes at the instants at which time alone changes a
// decision.
//
// Placements and workloads are kept apart (planner, bindings), and share one
// picture: the fleet and the reservations.
//
// The planner is the part without a clock or a store: given objects and a
// moment it says which statuses to write. The reconciler drives it with the live
// fleet, a simulation with a copy.
package reconcile
