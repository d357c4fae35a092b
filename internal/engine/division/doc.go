// Package division chooses among candidates and divides replicas among them. It is arithmetic only:
// clusters are rows with numbers, not objects.
//
// A division has three steps. Candidates that cannot be used are left out; if there are spread
// constraints, some of the others are selected; and the replicas are apportioned among the selected
// ones by the Webster (Sainte-Laguë) method, starting from what they hold. The result depends only
// on the request and the set of candidates, not on their order.
package division
