// Package arktos is the API of the Arktos global scheduler, under /globalscheduler/v1. It
// translates between its documents and our own objects: a site is a cluster with a region
// and one zone, what a collector pushes are amounts that are available at sites, a pod or
// an allocation is a workload that places itself. What it shows and writes goes through
// the Backend, as everything else of the API.
package arktos
