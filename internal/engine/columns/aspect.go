package columns

import "math/bits"

// Aspects are what can change about a fleet, as a set. Checks say which ones they
// read, a Delta says which ones changed: a decision is looked at again where the
// two meet.
type Aspects uint32

// The aspects of a cluster.
const (
	// presence is that there is the cluster at all. Everything reads it.
	presence Aspects = 1 << iota
	// Labels are the labels, and Claims the claims.
	Labels
	Claims
	// Owners are the namespaces that the cluster belongs to.
	Owners
	// Online is whether the cluster is online, and Paused whether it is paused.
	Online
	Paused
	// Taints are the taints in force, declared and automatic.
	Taints
	// Place is provider, region and zones.
	Place
	// CustomResources and APIResources are what is installed.
	CustomResources
	APIResources
	// Flavors are the sizes of machines.
	Flavors
	// Amounts are the resources that there are, are in use and were reported.
	Amounts
	// Observations are what else is seen of the cluster, as its conditions.
	Observations
	// Membership is in which cluster sets it is.
	Membership
	// Failing is which metrics that must have a value have none.
	Failing
	// MetricValues are its metrics and their values, and ScoreValues its placement
	// scores.
	MetricValues
	ScoreValues

	// rowAspects is how many aspects With notes row by row: those above.
	rowAspects = iota
)

// OfCluster are the aspects of a cluster that With tells of.
const OfCluster Aspects = 1<<rowAspects - 1

// The aspects that are no facts of a cluster.
const (
	// Reserved is what decisions reserve on the cluster, and Chosen how many decisions
	// chose it: no facts of the fleet.
	Reserved Aspects = 1 << (rowAspects + iota)
	Chosen

	// MetricNames are which metrics exist, and Sets which cluster sets do, and
	// whether they are empty: no facts of one cluster.
	MetricNames
	Sets
	// Clock is the time: an answer that reads it runs out.
	Clock
)

// Any reports whether the sets have an aspect in common.
func (a Aspects) Any(other Aspects) bool { return a&other != 0 }

// Delta says what With changed, so that only what depends on it is decided
// again.
type Delta struct {
	// Rows are the rows, ascending, about which anything changed.
	Rows []int
	// Gone are the names of clusters that were removed.
	Gone []string
	// Fleet are the aspects that changed of the fleet as a whole: MetricNames says
	// that a metric object appeared or disappeared, Sets that a cluster set appeared,
	// disappeared, changed its namespaces or its selection of clusters, or has become
	// empty or no longer is; ScoreValues that of which clusters placement scores have
	// expired.
	Fleet Aspects

	all  Aspects            // what changed of all Rows
	some Aspects            // what changed of any
	rows [rowAspects]Bitmap // those with an aspect changed, by its position; nil = none
}

// AllOf is a delta that consists of some aspects of rows, ascending.
func AllOf(aspects Aspects, rows []int) Delta {
	return Delta{Rows: rows, all: aspects, some: aspects}
}

// Empty reports that nothing changed.
func (d *Delta) Empty() bool { return len(d.Rows) == 0 && len(d.Gone) == 0 && d.Fleet == 0 }

// Concerns reports whether something that reads some aspects is concerned by what
// changed of any row.
func (d *Delta) Concerns(reads Aspects) bool { return d.some.Any(reads | presence) }

// ConcernsRow is Concerns for one of Rows.
func (d *Delta) ConcernsRow(row int, reads Aspects) bool {
	reads |= presence
	if d.all.Any(reads) {
		return true
	}
	for left := reads & d.some; left != 0; left &= left - 1 {
		if d.rows[bits.TrailingZeros32(uint32(left))].Has(row) {
			return true
		}
	}
	return false
}

// of are the rows of which an aspect changed, to be added to.
func (d *Delta) of(aspect Aspects, slots int) Bitmap {
	d.some |= aspect
	at := bits.TrailingZeros32(uint32(aspect))
	if d.rows[at] == nil {
		d.rows[at] = NewBitmap(slots)
	}
	return d.rows[at]
}
