package engine

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Check is one thing that is asked of clusters: one label constraint, one
// resource request. It is an immutable value that describes itself, so that
// deciding, waking, explaining and simulating need no list of what there is.
// Apply and Admits must agree; a property test holds them against each other.
type Check interface {
	// Name is the name in explanations of the filter that made the check.
	Name() string
	// Key writes what makes the check equal to another of its filter: two with
	// equal keys admit the same clusters for as long, and read the same.
	Key(k *Key)
	// Reads are the aspects of the fleet that the answer depends on.
	Reads() Aspects
	// Apply removes from keep the clusters that the check rejects, seen as clusters
	// outside of the present decision.
	Apply(l *Look, keep Bitmap)
	// Admits is the same question for one row. current says that the cluster is
	// part of the present decision, which some checks judge more mildly.
	Admits(l *Look, row int, current bool) bool
	// On names what the check looks at: the constraint as the user wrote it.
	On() string
	// Blame completes the sentence about n clusters, "3 ...": "are not online".
	Blame(n int) string
	// Reason says why the check rejects the row.
	Reason(l *Look, row int) string
}

// expiring is a check whose answer time alone may change. It reads the Clock.
type expiring interface {
	Check
	// Until is when time alone first takes the row out, zero if it does not. chosen
	// says that the row is part of a decision.
	Until(l *Look, row int, chosen bool) time.Time
}

// Cause is a part of what one check rejected.
type Cause struct {
	On    string // what the check looked at
	Count int
	Why   string // what is wrong with that, where more is known
}

// causer is a check that can say only of the fleet what it rejected clusters on.
type causer interface {
	// Causes divides the clusters that the check rejected, most frequent first.
	Causes(l *Look, rejected func(yield func(row int) bool)) []Cause
	// Several reports whether dropping any one cause would not be enough.
	Several(l *Look, row int, current bool) bool
}

// teller is a check whose reasons tell the values of metrics.
type teller interface {
	// Tells is the metric whose value the reason for a row tells, nil where it tells
	// of none.
	Tells(l *Look, row int) *api.Key
}

// Filter makes checks of one sort. Each has a file of its own.
type Filter interface {
	// Name is the filter's name in explanations.
	Name() string
	// Compile appends to made the checks that a spec asks for, in the order in which it
	// names them; none where it asks for nothing. The error is that of a spec that
	// never should have passed validation.
	Compile(s *Spec, made []Check) ([]Check, error)
}

// filters are all filters, in the order in which their checks are applied and a
// rejection is attributed. A new filter is one file and one line here.
var filters = []Filter{
	ownership{},
	clusterSets{},
	state{},
	pause{},
	taints{},
	clusterAffinity{},
	clusterNames{},
	site{},
	labelConstraints{},
	kubernetesVersion{},
	predicates{},
	customResources{},
	apiResources{},
	groups{},
	metricsAvailable{},
	metricConstraints{},
	resources{},
}

// Spec is what filters compile: what is asked of clusters, whoever asks.
type Spec struct {
	// Namespace is the one whose clusters, sets and metrics are seen.
	Namespace string
	// Placement is the spec of a placement, or of what looks for a host as one does;
	// empty for a workload.
	Placement *api.PlacementSpec
	// Workload is that of a workload, nil for others. Policy is the part of its policy
	// that says where to, nil where it has none.
	Workload *api.WorkloadSpec
	Policy   *api.PropagationPlacement
	// tiers are the workload's affinity group and then its overflow tiers.
	tiers []affinity
	// tolerations are those of the placement or of the policy.
	tolerations *tolerations
	// rated are the metrics that the user named to rate clusters by.
	rated []string
	// takesFailing says that metrics without a value keep nothing out.
	takesFailing bool
}

// What a spec has that asks for nothing of a sort; shared, as nobody changes it.
var (
	noPlacement   api.PlacementSpec
	noTolerations tolerations
)

// checks are what a query asks of clusters, in the order of the filters.
type checks struct {
	all      []Check
	expiring []expiring // those of all whose answer time alone may change
	reads    Aspects    // what any of them reads
}

// compileChecks asks every filter for its checks.
func compileChecks(s *Spec) (checks, error) {
	if s.Placement == nil {
		s.Placement = &noPlacement
	}
	if s.tolerations == nil {
		s.tolerations = &noTolerations
	}
	c := checks{all: make([]Check, 0, 8)}
	for _, filter := range filters {
		var err error
		if c.all, err = filter.Compile(s, c.all); err != nil {
			return checks{}, err
		}
	}
	for _, check := range c.all {
		reads := check.Reads()
		c.reads |= reads
		if reads.Any(Clock) {
			if e, ok := check.(expiring); ok {
				c.expiring = append(c.expiring, e)
			}
		}
	}
	return c, nil
}

// write writes the keys of all checks, filter by filter. Neither the order in which
// a spec names equal things nor naming one twice makes another key, unless it is
// one of words.
func (c *checks) write(k *Key) {
	for rest := c.all; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Name() == rest[0].Name() {
			n++
		}
		k.Text("filter", rest[0].Name())
		k.Each("checks", n, func(k *Key, i int) { rest[i].Key(k) })
		rest = rest[n:]
	}
}

// Look is one look at the fleet: all that checks see besides what they are made
// of.
type Look struct {
	fleet    *Fleet
	reserved *Reservations
	// owner is whose reservations do not count against a cluster of its decision.
	owner   *api.Key
	scratch Bitmap // overwritten by every Apply that needs it
	// until is when time alone first takes out a row that Apply kept; zero = never.
	until time.Time
}

// lookAt is a look at single rows for an owner.
func lookAt(f *Fleet, reserved *Reservations, owner *api.Key) Look {
	return Look{fleet: f, reserved: reserved, owner: owner}
}

// writable gives the look the scratch space that Apply needs.
func (l *Look) writable() { l.scratch = newBitmap(l.fleet.Slots()) }

// expires notes a moment at which time alone takes out a cluster.
func (l *Look) expires(at time.Time) { l.until = sooner(l.until, at) }

// sooner is the earlier of two moments; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// mask is the set of clusters that all checks admit, seen as clusters outside of
// the present decision.
func (c *checks) mask(l *Look) Bitmap {
	keep := newBitmap(l.fleet.Slots())
	copy(keep, l.fleet.live)
	for _, check := range c.all {
		check.Apply(l, keep)
	}
	return keep
}

// admits reports whether all checks admit a row.
func (c *checks) admits(l *Look, row int, current bool) bool {
	if !l.fleet.live.Has(row) {
		return false
	}
	for _, check := range c.all {
		if !check.Admits(l, row, current) {
			return false
		}
	}
	return true
}

// untilOf is when time alone first takes a row out.
func (c *checks) untilOf(l *Look, row int, chosen bool) time.Time {
	var first time.Time
	for _, check := range c.expiring {
		first = sooner(first, check.Until(l, row, chosen))
	}
	return first
}

// plural is the word for one or for several.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
