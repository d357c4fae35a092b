// Package store keeps the objects of the scheduling service in etcd: embedded in this process by
// default, or in an external cluster, through one client and therefore with the same semantics.
//
// An object is stored as two values under two keys. The Spec part is what a user wrote (metadata,
// spec, encrypted secrets) and is protected by compare-and-set. The Status part is derived; it is
// written only if the Spec part it was derived from is unchanged and this process still owns the
// store (the fence). So a user's compare-and-set never conflicts with a derived write.
//
// The embedded member opens no socket. A data directory has one owner at a time: Open acquires a
// lock file first, because a second etcd on a directory would hang silently. If a member can no
// longer write (full disk, failed fsync), the process exits with code 70 and a message: the state
// of its data is unknown from then on, and continuing would only make callers hang. A watchdog
// rejects writes with ErrFull well before that.
//
// etcd registers its own metrics on prometheus.DefaultRegisterer when it is linked in. Serve them
// along with Collectors, or leave them out.
package store
