// Package hosting chooses the cloud or project on which a cluster is created.
package hosting
