package reconcile

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// readers are decisions or cohorts whose checks read aspects that are not part of rows, by aspect:
// the time, which metrics and cluster sets exist, and reservations.
type readers[T comparable] map[columns.Aspects]map[T]struct{}

// apart are the aspects by which readers are listed.
var apart = [...]columns.Aspects{columns.Clock, columns.MetricNames, columns.Sets, columns.Reserved}

// add adds a reader of some aspects.
func (r readers[T]) add(one T, reads columns.Aspects) {
	for _, aspect := range apart {
		if reads.Any(aspect) {
			add(r, aspect, one)
		}
	}
}

func (r readers[T]) remove(one T, reads columns.Aspects) {
	for _, aspect := range apart {
		if reads.Any(aspect) {
			drop(r, aspect, one)
		}
	}
}
