package filter

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
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
	Key(k key.Writer)
	// Reads are the aspects of the fleet that the answer depends on.
	Reads() columns.Aspects
	// Apply removes from keep the clusters that the check rejects, seen as clusters
	// outside of the present decision.
	Apply(l *Look, keep columns.Bitmap)
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

// The interfaces that follow are what only some checks have to say. Nobody asks of
// which type a check is.

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

// Causer is a check that can say only of the fleet what it rejected clusters on.
type Causer interface {
	// Causes divides the clusters that the check rejected, most frequent first.
	Causes(l *Look, rejected func(yield func(row int) bool)) []Cause
	// Several reports whether dropping any one cause would not be enough.
	Several(l *Look, row int, current bool) bool
}

// Teller is a check whose reasons tell the values of metrics.
type Teller interface {
	// Tells is the metric whose value the reason for a row tells, nil where it tells
	// of none.
	Tells(l *Look, row int) *api.Key
}

// Reserving is a check by which a decision reserves an amount on every cluster.
type Reserving interface {
	Check
	// Reserves is the amount.
	Reserves() ledger.Amount
}

// Naming is a check that names a metric, which has to exist for anything to be
// admitted.
type Naming interface {
	Check
	// Metric is its name.
	Metric() string
}

// Confining is a check that admits only members of cluster sets.
type Confining interface {
	Check
	// Sets are the sets that are named, in order.
	Sets() []string
	// Usable are those of them that exist and admit the namespace, and how many
	// clusters they have together at most: none is what matters.
	Usable(f *columns.Fleet) (names []string, members int)
}

// Evicting is a check by which a workload loses a cluster that it is on.
type Evicting interface {
	Check
	// Offline says that it is about whether the cluster is online: what else there is
	// can be asked of an offline one, too.
	Offline() bool
}

// filter makes checks of one sort. Each has a file of its own.
type filter interface {
	// Name is the filter's name in explanations.
	Name() string
	// Compile appends to made the checks that a spec asks for, in the order in which it
	// names them; none where it asks for nothing. The error is that of a spec that
	// never should have passed validation.
	Compile(s *Spec, made []Check) ([]Check, error)
}

// filters are all of them, in the order in which their checks are applied and a
// rejection is attributed. A new filter is one file and one line here.
var filters = []filter{
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
	// Tiers are the workload's affinity group and then its overflow tiers.
	Tiers []Affinity
	// Tolerations are those of the placement or of the policy.
	Tolerations *Tolerations
	// Rated are the metrics that the user named to rate clusters by.
	Rated []string
	// TakesFailing says that metrics without a value keep nothing out.
	TakesFailing bool
}

// What a spec has that asks for nothing of a sort; shared, as nobody changes it.
var (
	noPlacement   api.PlacementSpec
	noTolerations Tolerations
)

// Checks are what a query asks of clusters, in the order of the filters.
type Checks struct {
	All      []Check
	expiring []expiring      // those of all whose answer time alone may change
	Reads    columns.Aspects // what any of them reads
}

// CompileChecks asks every filter for its checks.
func CompileChecks(s *Spec) (Checks, error) {
	if s.Placement == nil {
		s.Placement = &noPlacement
	}
	if s.Tolerations == nil {
		s.Tolerations = &noTolerations
	}
	c := Checks{All: make([]Check, 0, 8)}
	for _, filter := range filters {
		var err error
		if c.All, err = filter.Compile(s, c.All); err != nil {
			return Checks{}, err
		}
	}
	for _, check := range c.All {
		reads := check.Reads()
		c.Reads |= reads
		if reads.Any(columns.Clock) {
			if e, ok := check.(expiring); ok {
				c.expiring = append(c.expiring, e)
			}
		}
	}
	return c, nil
}

// ExpiringReads is what those checks read whose answer time alone may change.
func (c *Checks) ExpiringReads() columns.Aspects {
	reads := columns.Aspects(0)
	for _, check := range c.expiring {
		reads |= check.Reads()
	}
	return reads
}

// Write writes the keys of all checks, filter by filter. Neither the order in which
// a spec names equal things nor naming one twice makes another key, unless it is
// one of words.
func (c *Checks) Write(k key.Writer) {
	rest := c.All
	write := func(k key.Writer, i int) { rest[i].Key(k) }
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && rest[n].Name() == rest[0].Name() {
			n++
		}
		k.Text("filter", rest[0].Name())
		k.Each("checks", n, write)
		rest = rest[n:]
	}
}

// First is the first of some checks that has something to say, false where none has.
func First[T Check](c *Checks) (check T, ok bool) {
	for _, one := range c.All {
		if check, ok = one.(T); ok {
			return check, true
		}
	}
	return check, false
}

// Look is one look at the fleet: all that checks see besides what they are made
// of.
type Look struct {
	Fleet    *columns.Fleet
	Reserved *ledger.Reservations
	// Owner is whose reservations do not count against a cluster of its decision.
	Owner   *api.Key
	scratch columns.Bitmap // overwritten by every Apply that needs it
	// Until is when time alone first takes out a row that Apply kept; zero = never.
	Until time.Time
}

// LookAt is a look at single rows for an owner.
func LookAt(f *columns.Fleet, reserved *ledger.Reservations, owner *api.Key) Look {
	return Look{Fleet: f, Reserved: reserved, Owner: owner}
}

// Writable gives the look the scratch space that Apply needs.
func (l *Look) Writable() { l.scratch = columns.NewBitmap(l.Fleet.Slots()) }

// expires notes a moment at which time alone takes out a cluster.
func (l *Look) expires(at time.Time) { l.Until = Sooner(l.Until, at) }

// Sooner is the earlier of two moments; zero is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Mask is the set of clusters that all checks admit, seen as clusters outside of
// the present decision.
func (c *Checks) Mask(l *Look) columns.Bitmap {
	keep := columns.NewBitmap(l.Fleet.Slots())
	copy(keep, l.Fleet.Live())
	for _, check := range c.All {
		check.Apply(l, keep)
	}
	return keep
}

// Admits reports whether all checks admit a row.
func (c *Checks) Admits(l *Look, row int, current bool) bool {
	if !l.Fleet.Live().Has(row) {
		return false
	}
	for _, check := range c.All {
		if !check.Admits(l, row, current) {
			return false
		}
	}
	return true
}

// UntilOf is when time alone first takes a row out.
func (c *Checks) UntilOf(l *Look, row int, chosen bool) time.Time {
	var first time.Time
	for _, check := range c.expiring {
		first = Sooner(first, check.Until(l, row, chosen))
	}
	return first
}

// Plural is the word for one or for several.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
