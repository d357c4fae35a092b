package filter

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Check is one requirement on clusters, such as a label constraint or a resource request. It is an
// immutable value that describes itself, so that deciding, waking, explaining and simulating do not
// need to know the kinds of checks. Apply and Admits must agree; a property test compares them.
type Check interface {
	// Name is the name of the filter in explanations.
	Name() string
	// Key writes what distinguishes the check from others of its filter: two checks with equal keys
	// admit the same clusters for the same time, and read the same aspects.
	Key(k key.Writer)
	// Reads returns the aspects of the fleet that the answer depends on.
	Reads() columns.Aspects
	// Apply removes the clusters that the check rejects from keep. They are treated as clusters
	// outside the current decision.
	Apply(l *Evaluation, keep columns.Bitmap)
	// Admits gives the answer for one row. current says that the cluster is part of the current
	// decision, for which some checks are more lenient.
	Admits(l *Evaluation, row int, current bool) bool
	// On returns what the check looks at: the constraint as the user wrote it.
	On() string
	// Rejection completes a sentence about n clusters, "3 ...": "are not online".
	Rejection(n int) string
	// Reason says why the check rejects the row.
	Reason(l *Evaluation, row int) string
}

// Optional interfaces of checks. Code tests for these, never for the type of a check.

// expiring is a check whose answer may change through the passing of time alone. It reads the
// Clock.
type expiring interface {
	Check
	// Until returns when the row will no longer be admitted through the passing of time alone, or
	// zero. chosen says that the row is part of a decision.
	Until(l *Evaluation, row int, chosen bool) time.Time
}

// Cause is one reason for which a check rejected clusters.
type Cause struct {
	On    string // what the check looked at
	Count int
	Why   string // what is wrong with it, if known
}

// Causer is a check that knows the causes of its rejections only together with the fleet.
type Causer interface {
	// Causes groups the clusters that the check rejected by cause, most frequent first.
	Causes(l *Evaluation, rejected func(yield func(row int) bool)) []Cause
	// Several reports whether a cluster would still be rejected without any single cause.
	Several(l *Evaluation, row int, current bool) bool
}

// Teller is a check whose reasons contain values of metrics.
type Teller interface {
	// Tells returns the metric whose value the reason for a row contains, or nil.
	Tells(l *Evaluation, row int) *api.Key
}

// unreading is a check of values that may be unreadable for a while. Meanwhile, it admits no cluster
// anew, and takes none from a decision.
type unreading interface {
	Check
	// Unread returns a metric whose value the check needs for a row and that cannot be read, or nil.
	Unread(l *Evaluation, row int) *columns.MetricState
}

// Reserving is a check whose placements reserve an amount on every chosen cluster.
type Reserving interface {
	Check
	// Reserves returns the amount.
	Reserves() ledger.Amount
}

// Naming is a check that names a metric. If the metric does not exist, nothing is admitted.
type Naming interface {
	Check
	// Metric returns the name.
	Metric() string
}

// Confining is a check that only admits members of cluster sets.
type Confining interface {
	Check
	// Sets returns the names of the sets, sorted.
	Sets() []string
	// Usable returns the sets that exist and admit the namespace, and an upper bound on the number
	// of their clusters. Callers only distinguish 0 from more.
	Usable(f *columns.Fleet) (names []string, members int)
}

// Evicting is a check that makes a workload leave a cluster that it is on.
type Evicting interface {
	Check
	// Offline says that the check is about whether the cluster is online. The other checks can be
	// evaluated for offline clusters too.
	Offline() bool
}

// filter compiles the checks of one kind. Each filter has its own file.
type filter interface {
	// Name returns the filter's name in explanations.
	Name() string
	// Compile appends the checks that a spec requires, in the order of the spec. It fails only for
	// a spec that should not have passed validation.
	Compile(s *Spec, made []Check) ([]Check, error)
}

// filters lists all filters, in the order in which their checks are applied and rejections are
// attributed. To add a filter, add its file and a line here.
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

// Spec is the input of filters: the requirements on clusters, of any kind of object.
type Spec struct {
	// Namespace is the namespace whose clusters, sets and metrics are visible.
	Namespace string
	// Placement is the spec of a placement, or of a guest that looks for a host in the same way. It
	// is empty for a workload.
	Placement *api.PlacementSpec
	// Workload is the spec of a workload, otherwise nil. Policy is the placement part of its
	// policy, or nil.
	Workload *api.WorkloadSpec
	Policy   *api.PropagationPlacement
	// Tiers are the workload's affinity group, followed by its overflow tiers.
	Tiers []Affinity
	// Tolerations are those of the placement or policy.
	Tolerations *Tolerations
	// Rated are the metrics that the user named to rate clusters.
	Rated []string
	// TakesFailing says that failing metrics exclude nothing.
	TakesFailing bool
}

// Empty specs, which require nothing. They are shared and never modified.
var (
	noPlacement   api.PlacementSpec
	noTolerations Tolerations
)

// Checks are the requirements of a query, in filter order.
type Checks struct {
	All      []Check
	expiring []expiring      // all checks whose answer may change through the passing of time alone
	Reads    columns.Aspects // what any of them reads
}

// Unread returns a metric that a check needs for a row and whose value cannot be read, or nil.
func (c *Checks) Unread(l *Evaluation, row int) *columns.MetricState {
	for _, check := range c.All {
		if check, ok := check.(unreading); ok {
			if s := check.Unread(l, row); s != nil {
				return s
			}
		}
	}
	return nil
}

// CompileChecks compiles the checks of all filters.
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

// ExpiringReads returns what the expiring checks read.
func (c *Checks) ExpiringReads() columns.Aspects {
	reads := columns.Aspects(0)
	for _, check := range c.expiring {
		reads |= check.Reads()
	}
	return reads
}

// Write writes the keys of all checks, filter by filter. The order and repetition of equal
// requirements in a spec do not affect the key, unless it is a wording key.
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

// First returns the first check of type T, or false.
func First[T Check](c *Checks) (check T, ok bool) {
	for _, one := range c.All {
		if check, ok = one.(T); ok {
			return check, true
		}
	}
	return check, false
}

// Evaluation is what checks are evaluated against: one version of the fleet, with reservations.
type Evaluation struct {
	Fleet    *columns.Fleet
	Reserved *ledger.Reservations
	// Owner is the object whose own reservations do not count against the clusters of its decision.
	Owner   *api.Key
	scratch columns.Bitmap // overwritten by Apply
	// Until is when a row that Apply kept will first be rejected through the passing of time alone;
	// zero = never.
	Until time.Time
}

// NewEvaluation returns an Evaluation for checking single rows.
func NewEvaluation(f *columns.Fleet, reserved *ledger.Reservations, owner *api.Key) Evaluation {
	return Evaluation{Fleet: f, Reserved: reserved, Owner: owner}
}

// Writable allocates the scratch space that Apply needs.
func (l *Evaluation) Writable() { l.scratch = columns.NewBitmap(l.Fleet.Slots()) }

// expires records a time at which a cluster will be rejected.
func (l *Evaluation) expires(at time.Time) { l.Until = Sooner(l.Until, at) }

// Sooner returns the earlier of two times; zero means never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Mask returns the clusters that all checks admit, treated as clusters outside the current
// decision.
func (c *Checks) Mask(l *Evaluation) columns.Bitmap {
	keep := columns.NewBitmap(l.Fleet.Slots())
	copy(keep, l.Fleet.Live())
	for _, check := range c.All {
		check.Apply(l, keep)
	}
	return keep
}

// Admits reports whether all checks admit a row.
func (c *Checks) Admits(l *Evaluation, row int, current bool) bool {
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

// UntilOf returns when a row will first be rejected through the passing of time alone.
func (c *Checks) UntilOf(l *Evaluation, row int, chosen bool) time.Time {
	var first time.Time
	for _, check := range c.expiring {
		first = Sooner(first, check.Until(l, row, chosen))
	}
	return first
}

// Plural returns one or many, depending on n.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
