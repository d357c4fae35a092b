package store

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Part is one of the two values of an object.
type Part int

// Parts of an object.
const (
	// Spec is the user-written part: metadata, spec and encrypted secrets.
	Spec Part = iota
	// Status is the derived part.
	Status
)

// String returns the name of the part.
func (p Part) String() string {
	switch p {
	case Spec:
		return "spec"
	case Status:
		return "status"
	}
	return fmt.Sprintf("part %d", int(p))
}

// Record is one part of one object at one revision. Value is shared with etcd and other readers and
// must not be modified. A nil Value means that the part was deleted at ModRevision.
type Record struct {
	Key   api.Key
	Part  Part
	Value []byte
	// Before is the value before this one, as far as WatchStatuses knows it.
	Before         []byte
	CreateRevision int64
	ModRevision    int64
	// Damage says why the stored value fails its checksum; Value is then empty. It is an
	// ErrDamaged.
	Damage error
}

// Batch is a part of a watch: all changes of one or more complete revisions, in order. A batch
// without records says that nothing else changed up to Revision. After a batch with Err the watch
// has ended and the reader must Load again.
type Batch struct {
	Revision int64
	Records  []Record
	Err      error
}
