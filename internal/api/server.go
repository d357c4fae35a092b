package api

import "time"

// List is one page of a collection.
type List[T Object] struct {
	Items           []T    `json:"items"`
	Continue        string `json:"continue,omitempty" doc:"Token of the next page; absent on the last one."`
	ResourceVersion string `json:"resource_version" doc:"Store revision that all pages show."`
	// Damaged are objects that belong to the list and cannot be shown.
	Damaged []DamagedObject `json:"damaged,omitempty" doc:"Objects that exist and cannot be shown, because they are damaged in the store; whether they match label_selector is not known. Absent where there are none."`
}

// DamagedObject names a stored object whose value is not the one that was written.
type DamagedObject struct {
	Kind      Kind   `json:"kind" doc:"Kind of the object."`
	Namespace string `json:"namespace,omitempty" doc:"Namespace, or cluster, of the object; absent for global ones."`
	Name      string `json:"name" doc:"Name of the object."`
}

// ServerInfo is what /v1/server says.
type ServerInfo struct {
	Version string    `json:"version"`
	Leader  bool      `json:"leader"`
	Now     time.Time `json:"now"`
	Store   StoreInfo `json:"store"`
	// Damaged are all objects and records that are damaged in the store.
	Damaged []DamagedObject `json:"damaged,omitempty" doc:"Objects, tokens and other records that are damaged in the store. Absent where there are none."`
}

// StoreInfo is the state of the store.
type StoreInfo struct {
	Mode       string `json:"mode" doc:"embedded or external."`
	ClusterID  string `json:"cluster_id"`
	Revision   int64  `json:"revision"`
	SizeBytes  int64  `json:"size_bytes"`
	InUseBytes int64  `json:"in_use_bytes"`
	QuotaBytes int64  `json:"quota_bytes"`
}

// EventType says what happened to an object.
type EventType string

// The types of event on a watch.
const (
	EventPut    EventType = "put"
	EventDelete EventType = "delete"
)

// Event is one change on a watch stream. The object of a delete has only its
// metadata.
type Event struct {
	Type            EventType `json:"type"`
	ResourceVersion string    `json:"resource_version"`
	Object          Object    `json:"object"`
}
