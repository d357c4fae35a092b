package reconcile

import "github.com/scheduler/terraform-provider-scheduler/internal/engine"

// readers are those whose checks read aspects of the fleet that no row tells of,
// by aspect: the time, which metrics and cluster sets exist, and what is reserved.
type readers[T comparable] map[engine.Aspects]map[T]struct{}

// apart are the aspects that readers are listed by.
var apart = [...]engine.Aspects{engine.Clock, engine.MetricNames, engine.Sets, engine.Reserved}

// add lists one that reads some aspects.
func (r readers[T]) add(one T, reads engine.Aspects) {
	for _, aspect := range apart {
		if reads.Any(aspect) {
			add(r, aspect, one)
		}
	}
}

func (r readers[T]) remove(one T, reads engine.Aspects) {
	for _, aspect := range apart {
		if reads.Any(aspect) {
			drop(r, aspect, one)
		}
	}
}
