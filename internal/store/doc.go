// Package store keeps the objects of the scheduling service in etcd: embedded
// in this process by default, an external cluster by configuration, through one
// client and so with one set of semantics.
//
// An object is two values under two keys. The Spec part is what a user wrote
// (metadata, spec, sealed secrets) and is guarded by compare-and-set. The
// Status part is derived; it is written only while the Spec part it was derived
// from is unchanged and while this process still owns the store (the fence). So
// a user's compare-and-set never collides with a derived write.
//
// The embedded member opens no socket. A data directory has one owner at a
// time: Open takes a lock file first, because a second etcd on a directory would
// wait for ever without a word. A member that can no longer write (full disk,
// failed fsync) ends the process with exit code 70 and a line that says why: the
// state of its data is unknown from then on, and staying up would only make
// callers hang. A watchdog refuses writes with ErrFull well before that.
//
// etcd registers its own metrics on prometheus.DefaultRegisterer when it is
// linked in. Serve them beside Collectors, or leave them out.
package store
