// Package serve has what every HTTP server of the process needs: TLS certificates that
// are reloaded when their files change, a limit on the connections of all listeners
// together, deadlines for slow clients, compressed responses, and a shutdown that lets
// running requests finish. It is independent of what is served.
//
// Two parts are written here although libraries exist. netutil.LimitListener blocks when
// the limit is reached, so that idle connections lock all other clients out. Here they
// are closed to make room, by client and by listener. Certificate reloaders watch one
// file at a time. Here a certificate, its key and the client CA take effect together or
// not at all, even if files are replaced through symbolic links.
package serve
