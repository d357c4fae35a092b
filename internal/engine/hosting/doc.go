// Package hosting chooses the cloud or project on which a cluster is created.
// A host is chosen once and kept while it exists; the guest is what is created on it.
package hosting
