// Package declare declares clusters that placements and workloads demand, while this server leads:
// cluster objects without access, which somebody else makes real. What is declared follows from the
// engine's supply package; this one follows the fleet and writes.
package declare
