// Package fdlimit divides the file descriptors of the process among their uses, so that none
// starves another.
package fdlimit

import (
	"fmt"
	"syscall"
)

const (
	// setAside is reserved for the store's files, the log, certificates, backups and name
	// resolution.
	setAside = 128
	// least is the minimum limit with which the server starts.
	least = 64
)

// Budget is the number of descriptors for each use.
type Budget struct {
	// Limit is the limit of the process.
	Limit int
	// Inbound is for connections from clients, Outbound for connections to metrics providers,
	// clusters and clouds.
	Inbound, Outbound int
}

// Read divides the limit of this process. The Go runtime has already raised the soft limit to the
// hard limit.
func Read() (Budget, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return Budget{}, fmt.Errorf("read the limit of open files: %w", err)
	}
	return share(int(min(limit.Cur, 1<<30)))
}

// share divides a limit: half of what is not set aside is for inbound connections, half for
// outbound ones.
func share(limit int) (Budget, error) {
	if limit < least {
		return Budget{}, fmt.Errorf("the process may open %d files, which is not enough: at least %d are needed (ulimit -n, LimitNOFILE=)", limit, least)
	}
	half := (limit - min(setAside, limit/2)) / 2
	return Budget{Limit: limit, Inbound: half, Outbound: half}, nil
}
