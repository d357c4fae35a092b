package store

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Part is one of the two values an object consists of.
type Part int

// The parts of an object.
const (
	// Spec is the user-written part: metadata, spec and sealed secrets.
	Spec Part = iota
	// Status is the derived part.
	Status
)

// String names the part.
func (p Part) String() string {
	switch p {
	case Spec:
		return "spec"
	case Status:
		return "status"
	}
	return fmt.Sprintf("part %d", int(p))
}

// Record is one part of one object at one revision. Value is shared with etcd
// and with other readers: it must not be changed. A nil Value says that the part
// was deleted at ModRevision.
type Record struct {
	Key            api.Key
	Part           Part
	Value          []byte
	CreateRevision int64
	ModRevision    int64
	// Damage says why the value that is stored is not the one that was written;
	// Value is then empty. It is an ErrDamaged.
	Damage error
}

// Batch is a piece of a watch: every change of one or more whole revisions, in
// order. A batch without records says that nothing else changed up to Revision.
// After a batch with Err the watch is over and the reader must Load again.
type Batch struct {
	Revision int64
	Records  []Record
	Err      error
}
