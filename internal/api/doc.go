// Package api defines the types of the scheduling service: kinds of objects, their specs and
// statuses, defaults and validation. The server, the Terraform provider and the command line share
// it, so the same rules apply to plans, requests and simulations.
//
// JSON names equal the Terraform attribute names. Durations are strings ("60s"), quantities are
// Kubernetes quantities ("1500m", "64Gi"), times are RFC 3339 in UTC.
//
// Objects from the server's in-memory fleet are shared between goroutines: treat them as immutable
// and modify a Copy.
package api
