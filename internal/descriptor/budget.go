// Package descriptor divides the file descriptors that the process may open, so that
// no use of them starves another.
package descriptor

import (
	"fmt"
	"syscall"
)

const (
	// setAside is for the store's files, the log, certificates, backups and the
	// resolution of names.
	setAside = 128
	// least is the limit below which the server does not start.
	least = 64
)

// Budget is how many descriptors each kind of use may have.
type Budget struct {
	// Limit is how many the process may have open.
	Limit int
	// Inbound is for connections of clients, Outbound for the server's own, to
	// metrics providers, clusters and clouds.
	Inbound, Outbound int
}

// Read shares out what the limit of this process allows. The Go runtime has
// raised the soft limit to the hard one by then.
func Read() (Budget, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return Budget{}, fmt.Errorf("read the limit of open files: %w", err)
	}
	return Share(int(min(limit.Cur, 1<<30)))
}

// Share shares out a limit: half of what is not set aside is for connections of
// clients, half for the server's own.
func Share(limit int) (Budget, error) {
	if limit < least {
		return Budget{}, fmt.Errorf("the process may open %d files, which is not enough: at least %d are needed (ulimit -n, LimitNOFILE=)", limit, least)
	}
	half := (limit - min(setAside, limit/2)) / 2
	return Budget{Limit: limit, Inbound: half, Outbound: half}, nil
}
