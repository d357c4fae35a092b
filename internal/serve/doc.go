// Package serve is what every HTTP server of the process needs: TLS whose files are
// read again when they change, a limit on the connections of all listeners together,
// deadlines for slow clients, compressed answers, and an end that lets the requests
// under way finish. It knows nothing of what is served.
//
// Two parts are our own although libraries exist. netutil.LimitListener bounds the
// number of connections, but blocks when it is reached: whoever holds idle connections
// keeps everybody out. Here those make room, by client and by listener. And certificate
// reloaders watch one file at a time; here a certificate, its key and the client CA take
// effect together or not at all, also where files are replaced through symbolic links.
package serve
