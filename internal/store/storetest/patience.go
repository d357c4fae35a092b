package storetest

import "github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"

// Patience is how long a store in a test may take for a request, and writes may fail or take before
// they are rejected: a store that is slow because the machine is busy is not one that has failed.
// Tests in which the store does not respond set shorter times.
const Patience = eventually.Limit
