package api

import "time"

// List is one page of a collection.
type List[T Object] struct {
	Items           []T    `json:"items" doc:"Objects on this page."`
	Continue        string `json:"continue,omitempty" doc:"Token of the next page. Absent on the last one."`
	ResourceVersion string `json:"resource_version" doc:"Store revision that all pages show."`
	// Damaged lists the objects of the list that cannot be shown.
	Damaged []DamagedObject `json:"damaged,omitempty" doc:"Objects that exist but cannot be shown, because they are damaged in the store. Whether they match the selectors is not known. Absent if there are none."`
}

// DamagedObject names a stored object whose value fails its checksum.
type DamagedObject struct {
	Kind      Kind   `json:"kind" doc:"Kind of the object."`
	Namespace string `json:"namespace,omitempty" doc:"Namespace or cluster of the object. Absent for global objects."`
	Name      string `json:"name" doc:"Name of the object."`
}

// ServerHeader names the server that responds. It is set on every response to an authenticated
// request.
const ServerHeader = "Scheduler-Server"

// LastContactHeader is set on every response to an authenticated request. It is how many
// milliseconds ago the store was last known to have nothing newer than what the response shows.
// Reads are served from memory and continue without the store, so this is their maximum age.
const LastContactHeader = "Scheduler-Last-Contact"

// RequestTimeoutHeader is the header of a request that says how long the client waits for the
// response.
const RequestTimeoutHeader = "Request-Timeout"

// ServerInfo is the response of /v1/server.
type ServerInfo struct {
	Version string    `json:"version" doc:"Version of the server."`
	Fields  string    `json:"fields" doc:"Fingerprint of the kinds and fields that the server knows. Servers and providers with the same one know the same fields."`
	Name    string    `json:"name,omitempty" doc:"Name of this server among several. Absent if there is only one."`
	Leader  bool      `json:"leader" doc:"Whether this server is the leader, which makes the decisions."`
	Now     time.Time `json:"now" doc:"The server's clock."`
	Store   StoreInfo `json:"store" doc:"State of the store."`
	// Servers are all running servers, the leader first.
	Servers []ServerMember `json:"servers,omitempty" doc:"All running servers that share the store. The first one is the leader. Absent if there is only one."`
	// Damaged are all objects and records that are damaged in the store.
	Damaged []DamagedObject `json:"damaged,omitempty" doc:"Objects, tokens and other records that are damaged in the store. Absent if there are none."`
}

// ServerMember is one of several servers that share a store.
type ServerMember struct {
	ID      string `json:"id" doc:"Unique ID of the server. Changes with each start."`
	Name    string `json:"name" doc:"Name of the server."`
	URL     string `json:"url" doc:"Address at which the other servers reach it."`
	Version string `json:"version" doc:"Version of the server."`
	Leader  bool   `json:"leader" doc:"Whether it is the leader, which makes the decisions."`
	// NewestFormat is the newest store format that the server can read.
	NewestFormat int `json:"newest_format" doc:"Newest format of the store that the server reads."`
	// Revision is the store revision that it last reported, a few seconds ago.
	Revision int64 `json:"revision" doc:"Store revision that it last reported, at most a few seconds ago."`
}

// StoreInfo is the state of the store.
type StoreInfo struct {
	Mode       string `json:"mode" doc:"'embedded' or 'external'."`
	ClusterID  string `json:"cluster_id" doc:"ID of the store."`
	Revision   int64  `json:"revision" doc:"Revision of the store. Grows with every change."`
	SizeBytes  int64  `json:"size_bytes" doc:"Size of the store on disk."`
	InUseBytes int64  `json:"in_use_bytes" doc:"Part of the size that holds data."`
	QuotaBytes int64  `json:"quota_bytes" doc:"Size at which the store stops accepting writes."`
	// Format is the format in which values are written. It is below NewestFormat until an upgrade
	// is finished.
	Format       int `json:"format" doc:"Format in which the store is written. Below 'newest_format' until an upgrade is finished."`
	NewestFormat int `json:"newest_format" doc:"Newest format that this server reads and writes."`
	// Members are the embedded stores that form one cluster.
	Members []StoreMember `json:"members,omitempty" doc:"Embedded stores that form one cluster. Absent for an embedded store of its own, and for an external one."`
}

// StoreMember is one of the embedded stores that form a cluster.
type StoreMember struct {
	ID     string `json:"id" doc:"ID of the member."`
	Name   string `json:"name" doc:"Name of its server."`
	URL    string `json:"url" doc:"Address at which the other members reach it."`
	Voter  bool   `json:"voter" doc:"Whether it has a vote. A new member has none until it has caught up."`
	Joined bool   `json:"joined" doc:"Whether it has ever been ready."`
	Leader bool   `json:"leader" doc:"Whether it leads the other members. That is not always the server that makes the decisions."`
}

// MemberList is the response of /v1/members.
type MemberList struct {
	Items []StoreMember `json:"items" doc:"Members of the cluster. Empty if the store is not one of a cluster."`
}

// MemberRequest asks to add a member.
type MemberRequest struct {
	Name string `json:"name" doc:"Name of the new server."`
	URL  string `json:"url" doc:"Address at which the other members reach it: https://host:port."`
}

// AddedMember is a new member, with the settings to start it.
type AddedMember struct {
	StoreMember
	ClusterPeers string `json:"cluster_peers" doc:"What its server is to be started with as --cluster-peers, with --cluster-join."`
}

// EventType is what happened to an object.
type EventType string

// Types of watch events.
const (
	EventPut    EventType = "put"
	EventDelete EventType = "delete"
)

// Event is one change on a watch stream. The object of a delete event has only metadata.
type Event struct {
	Type            EventType `json:"type" doc:"Type of the event."`
	ResourceVersion string    `json:"resource_version" doc:"Store revision of the event."`
	// From is present only if the decision changed.
	From   *Where `json:"from,omitempty" doc:"For a 'put' of a placement or workload that changed its decision: the decision before."`
	Object Object `json:"object" doc:"The object."`
}
