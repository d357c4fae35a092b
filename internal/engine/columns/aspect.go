package columns

import "math/bits"

// Aspects is a set of things about a fleet that can change. Checks declare which aspects they read,
// a Delta lists which ones changed, and a decision is reevaluated if the two intersect.
type Aspects uint32

// Aspects of a cluster.
const (
	// presence is whether the cluster exists. Everything reads it.
	presence Aspects = 1 << iota
	// Labels are the labels, and Claims the claims.
	Labels
	Claims
	// Owners are the namespaces that own the cluster.
	Owners
	// Online is whether the cluster is online, and Paused whether it is paused.
	Online
	Paused
	// Taints are the taints in force, declared and automatic.
	Taints
	// Place is the provider, region and zones.
	Place
	// CustomResources and APIResources are the resource types that are installed.
	CustomResources
	APIResources
	// Flavors are the machine sizes.
	Flavors
	// Amounts are the amounts of resources, their use and when they were reported.
	Amounts
	// Observations are other observed facts about the cluster, such as its conditions.
	Observations
	// Membership is which cluster sets contain the cluster.
	Membership
	// Failing is whether a metric with on_failure = exclude has no usable value.
	Failing
	// MetricValues are the cluster's metrics and their values, ScoreValues its placement scores.
	MetricValues
	ScoreValues

	// rowAspects is the number of aspects that With tracks by row: those above.
	rowAspects = iota
)

// OfCluster contains all aspects that With tracks by row.
const OfCluster Aspects = 1<<rowAspects - 1

// Aspects that are not facts about a cluster.
const (
	// Reserved is what decisions reserve on the cluster, and Chosen how many decisions chose it.
	// They are not part of the fleet.
	Reserved Aspects = 1 << (rowAspects + iota)
	Chosen

	// MetricNames is which metrics exist. Sets is which cluster sets exist, and whether they are
	// empty. They do not belong to one cluster.
	MetricNames
	Sets
	// MoveWindows is when decisions may move. It does not belong to one cluster.
	MoveWindows
	// Clock is the time. A result that reads it expires.
	Clock
)

// Any reports whether the sets intersect.
func (a Aspects) Any(other Aspects) bool { return a&other != 0 }

// Delta lists what With changed, so that only what depends on it is decided again.
type Delta struct {
	// Rows are the rows that changed in any way, ascending.
	Rows []int
	// Gone are the names of clusters that were removed.
	Gone []string
	// Fleet are the aspects of the whole fleet that changed. MetricNames: a metric object was
	// created or deleted. Sets: a cluster set was created or deleted, changed its namespaces or its
	// selection of clusters, or became empty or nonempty. ScoreValues: the set of clusters with
	// expired placement scores changed.
	Fleet Aspects

	all  Aspects            // aspects that changed in all Rows
	some Aspects            // aspects that changed in any row
	rows [rowAspects]Bitmap // rows in which an aspect changed, by the aspect's position; nil = none
}

// AllOf returns a Delta in which the given aspects changed in the given rows, which are ascending.
func AllOf(aspects Aspects, rows []int) Delta {
	return Delta{Rows: rows, all: aspects, some: aspects}
}

// Empty reports whether nothing changed.
func (d *Delta) Empty() bool { return len(d.Rows) == 0 && len(d.Gone) == 0 && d.Fleet == 0 }

// Concerns reports whether something that reads the given aspects is affected by a change in any
// row.
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

// of returns the rows in which an aspect changed, for modification.
func (d *Delta) of(aspect Aspects, slots int) Bitmap {
	d.some |= aspect
	at := bits.TrailingZeros32(uint32(aspect))
	if d.rows[at] == nil {
		d.rows[at] = NewBitmap(slots)
	}
	return d.rows[at]
}
