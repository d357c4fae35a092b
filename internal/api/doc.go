// Package api is the vocabulary of the scheduling service: the kinds of object,
// their specs and statuses, defaults and validation. The server, the Terraform
// provider and the command line share it, so a rule written here holds in a
// plan, in a request and in a simulation alike.
//
// JSON names equal the Terraform attribute names. Durations are strings
// ("60s"), quantities are Kubernetes quantities ("1500m", "64Gi"), times are
// RFC 3339 in UTC.
//
// Objects from the server's in-memory fleet are shared between goroutines: treat
// them as immutable and work on a Copy.
package api
