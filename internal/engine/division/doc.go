// Package division chooses among candidates and divides replicas over them. It
// is arithmetic only: it knows clusters as rows with numbers, no objects.
//
// A division has three steps. Candidates that can take nothing are left out;
// where spread constraints ask for it some of the rest are selected; and the
// replicas are apportioned over the selected ones by the method of Webster and
// Sainte-Laguë, from what they hold already. The result is a function of the
// request and the set of candidates: their order does not matter.
package division
