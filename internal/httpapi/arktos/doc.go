// Package arktos is the API of the Arktos global scheduler, under /globalscheduler/v1. It converts
// between its documents and this server's objects: a site is a cluster with a region and one zone,
// a collector pushes amounts that are available at sites, a pod or an allocation is a workload with
// its own placement. It shows and writes objects through the Backend, like the rest of the API.
package arktos
