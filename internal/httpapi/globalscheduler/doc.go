// Package globalscheduler translates between the API of the Arktos global
// scheduler and our own objects: a site is a cluster with a region and one zone,
// what a collector pushes are amounts that are available at sites, a pod or an
// allocation is a workload that places itself. It only translates; the routes are
// in httpapi.
package globalscheduler
