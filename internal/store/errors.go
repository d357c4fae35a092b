package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var (
	// ErrCompacted is returned if a requested revision is no longer kept, or was never part of this
	// store: the reader must start over.
	ErrCompacted = errors.New("the revision is no longer kept by the store")

	// ErrFull is returned for writes while the disk has too little free space or the store has
	// reached its quota. Nothing was written; reads continue to work.
	ErrFull = errors.New("the store is full")

	// ErrUnavailable is returned if the store cannot respond and nothing was written.
	ErrUnavailable = errors.New("the store is unavailable")

	// ErrUncertain is returned if a write was sent and no response came: it may have happened or
	// may still happen. It must not be retried blindly; read the object first.
	ErrUncertain = errors.New("the outcome of the write is unknown")

	// ErrFenced is returned for derived writes of a process that does not lead, or no longer leads.
	ErrFenced = errors.New("another server has taken over the store")

	// ErrInvalid is returned for a write that cannot be stored, such as one that is too large.
	ErrInvalid = errors.New("the write cannot be stored")
)

// CompactedError is an ErrCompacted of a watch.
type CompactedError struct {
	// Revision is the one up to which changes are no longer kept.
	Revision int64
}

// Error says which revisions are meant.
func (e *CompactedError) Error() string {
	return fmt.Sprintf("%s: it is compacted up to revision %d", ErrCompacted, e.Revision)
}

// Unwrap returns ErrCompacted.
func (e *CompactedError) Unwrap() error { return ErrCompacted }

// Conflict is one failed comparison.
type Conflict struct {
	Key  api.Key
	Part Part
	// Expected is the revision that the writer had seen; 0 = the part did not exist.
	Expected int64
	// Actual is the revision found; 0 = the part does not exist.
	Actual int64
}

// ConflictError lists the objects that somebody else changed, created or deleted since the writer
// read them.
type ConflictError struct {
	Keys      []api.Key
	Conflicts []Conflict
}

func newConflictError(conflicts []Conflict) *ConflictError {
	e := &ConflictError{Conflicts: conflicts, Keys: make([]api.Key, len(conflicts))}
	for i, c := range conflicts {
		e.Keys[i] = c.Key
	}
	return e
}

// Of returns the conflicts over one part, nil where there are none.
func (e *ConflictError) Of(part Part) *ConflictError {
	var of []Conflict
	for _, c := range e.Conflicts {
		if c.Part == part {
			of = append(of, c)
		}
	}
	if of == nil {
		return nil
	}
	return newConflictError(of)
}

// Error says for each object what was expected and what was found.
func (e *ConflictError) Error() string {
	lines := make([]string, 0, len(e.Conflicts))
	for i, c := range e.Conflicts {
		if i == 5 {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Conflicts)-i))
			break
		}
		switch {
		case c.Expected == 0:
			lines = append(lines, fmt.Sprintf("%s exists already, at revision %d", c.Key, c.Actual))
		case c.Actual == 0:
			lines = append(lines, fmt.Sprintf("%s does not exist; expected revision %d", c.Key, c.Expected))
		default:
			lines = append(lines, fmt.Sprintf("%s is at revision %d; expected %d", c.Key, c.Actual, c.Expected))
		}
	}
	return "conflict: " + strings.Join(lines, "; ")
}

// DeriveError lists the statuses of a Derive that were not written, with the reason of each. All
// others are written.
type DeriveError struct{ Failed map[api.Key]error }

// Error names some of the objects.
func (e *DeriveError) Error() string {
	keys := slices.SortedFunc(maps.Keys(e.Failed), api.Key.Compare)
	lines := make([]string, 0, len(keys))
	for i, key := range keys {
		if i == 5 {
			lines = append(lines, fmt.Sprintf("and %d more", len(keys)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s: %s", key, e.Failed[key]))
	}
	return strings.Join(lines, "; ")
}

// Unwrap returns the reasons.
func (e *DeriveError) Unwrap() []error { return slices.Collect(maps.Values(e.Failed)) }

// StalledError is returned, as ErrUnavailable, if writes have failed or not been answered for so
// long that waiting for the next one is pointless. The request was not sent.
type StalledError struct {
	// For is 0 if the cause shows it at once.
	For time.Duration
	// Cause is why the first write failed; nil if there has been no response.
	Cause error
}

// Error says for how long and why.
func (e *StalledError) Error() string {
	lasted := e.For.Truncate(time.Second)
	if e.For == 0 {
		return fmt.Sprintf("%s: %s", ErrUnavailable, plain(e.Cause))
	}
	if e.Cause == nil {
		return fmt.Sprintf("%s: writes have not been answered for %s", ErrUnavailable, lasted)
	}
	return fmt.Sprintf("%s: writes have failed for %s: %s", ErrUnavailable, lasted, plain(e.Cause))
}

// plain returns the message of a gRPC error without its codes.
func plain(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "Error while dialing: "); i >= 0 {
		return strings.TrimRight(text[i+len("Error while dialing: "):], "\"")
	}
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return text
}

// Is makes the error an ErrUnavailable.
func (e *StalledError) Is(target error) bool { return target == ErrUnavailable }

// LockedError says that another process holds the data directory.
type LockedError struct {
	Path string
	// Owner is the process ID in the lock file, or 0 if it cannot be read.
	Owner int
}

// Error names the directory and the process.
func (e *LockedError) Error() string {
	owner := "another process"
	if e.Owner != 0 {
		owner = fmt.Sprintf("process %d", e.Owner)
	}
	return fmt.Sprintf("the data directory %s is in use by %s: stop it, or use another directory", e.Path, owner)
}

// unsent reports whether there was no connection to send a request on. gRPC says so only in the
// message.
func unsent(err error) bool {
	return strings.Contains(err.Error(), "Error while dialing")
}

// classify maps an error of etcd to an error of this package. For a write, every response except a
// rejection leaves the outcome unknown.
func classify(err error, write bool) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUncertain):
		return err
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: its quota is used up", ErrFull)
	case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%w: %w", ErrCompacted, err)
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrDuplicateKey):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case errors.Is(err, rpctypes.ErrTooManyRequests), errors.Is(err, rpctypes.ErrPermissionDenied),
		errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrInvalidAuthToken),
		errors.Is(err, rpctypes.ErrNoLeader), unsent(err), isDropped(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case write:
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
