// Package gitops says which clusters decisions have, to controllers that make something for each
// cluster in an answer, and delete it when the cluster is missing in the next one: Argo CD's
// ApplicationSets (plugin generator) and flux-operator's ResourceSets (ExternalService).
//
// They delete everything after an answer without clusters, and cannot tell "nowhere" from "not
// known". So there is an answer without clusters only if the specs ask for none, or the controller
// has asked for such answers. Everything else is a problem, after which the controllers keep what
// they have. A decision among several that cannot be answered refuses all of them.
package gitops
