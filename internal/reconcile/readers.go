package reconcile

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// readers are those whose checks read aspects of the fleet that no row tells of,
// by aspect: the time, which metrics and cluster sets exist, and what is reserved.
type readers[T comparable] map[columns.Aspects]map[T]struct{}

// apart are the aspects that readers are listed by.
var apart = [...]columns.Aspects{columns.Clock, columns.MetricNames, columns.Sets, columns.Reserved}

// add lists one that reads some aspects.
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
