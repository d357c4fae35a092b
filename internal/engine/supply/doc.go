// Package supply matches what placements and workloads demand with the clusters that were made for
// it, and says which clusters to declare for the rest.
package supply
