package filter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// predicates requires that a cluster matches one of the placement's predicates.
type predicates struct{}

func (predicates) Name() string { return "predicates" }

func (predicates) Compile(s *Spec, made []Check) ([]Check, error) {
	if len(s.Placement.Predicates) == 0 {
		return made, nil
	}
	list, err := compilePredicates(s.Placement.Predicates)
	if err != nil {
		return made, err
	}
	return append(made, &matchesAny{predicates: list, namespace: s.Namespace}), nil
}

// matchesAny requires that a cluster matches any of some predicates.
type matchesAny struct {
	filter     predicates
	predicates []predicate
	namespace  string // whose metrics expressions read
}

func (c *matchesAny) Name() string { return c.filter.Name() }

func (c *matchesAny) Key(k key.Writer) {
	k.Each("predicates", len(c.predicates), func(k key.Writer, i int) { c.predicates[i].key(k) })
	if c.Reads().Any(columns.MetricValues) {
		k.Text("namespace", c.namespace)
	}
}

func (c *matchesAny) Reads() columns.Aspects {
	reads := columns.Aspects(0)
	for i := range c.predicates {
		reads |= c.predicates[i].reads()
	}
	return reads
}

func (c *matchesAny) On() string {
	texts := make([]string, len(c.predicates))
	for i := range c.predicates {
		texts[i] = c.predicates[i].String()
	}
	return strings.Join(texts, " or ")
}

func (c *matchesAny) Rejection(n int) string {
	if len(c.predicates) == 1 {
		if parts := c.predicates[0].parts(); len(parts) == 1 {
			return Plural(n, "does not", "do not") + " match predicate " + strconv.Quote(parts[0])
		}
	}
	return Plural(n, "matches no predicate", "match no predicate")
}

func (c *matchesAny) facts(l *Evaluation, row int) *clusterFacts {
	return &clusterFacts{fleet: l.Fleet, namespace: c.namespace, row: row}
}

func (c *matchesAny) Apply(l *Evaluation, keep columns.Bitmap) {
	matched, part := columns.NewBitmap(l.Fleet.Slots()), columns.NewBitmap(l.Fleet.Slots())
	for i := range c.predicates {
		copy(part, keep)
		part.AndNot(matched)
		c.predicates[i].selectInto(c.facts(l, 0), part, l.scratch)
		matched.Or(part)
	}
	keep.And(matched)
}

func (c *matchesAny) Admits(l *Evaluation, row int, current bool) bool {
	return c.matches(l, row) || current && c.Unread(l, row) != nil
}

func (c *matchesAny) matches(l *Evaluation, row int) bool {
	facts := c.facts(l, row)
	for i := range c.predicates {
		if c.predicates[i].match(facts) {
			return true
		}
	}
	return false
}

// Unread implements unreading.
func (c *matchesAny) Unread(l *Evaluation, row int) *columns.MetricState {
	if !c.Reads().Any(columns.MetricValues) || c.matches(l, row) {
		return nil
	}
	facts := c.facts(l, row)
	for i := range c.predicates {
		if s := c.predicates[i].unread(facts); s != nil {
			return s
		}
	}
	return nil
}

// Reason describes what fails in the predicate that comes closest.
func (c *matchesAny) Reason(l *Evaluation, row int) string {
	facts := c.facts(l, row)
	closest := 0
	var failing []string
	for i := range c.predicates {
		if f := c.predicates[i].failing(facts); i == 0 || len(f) < len(failing) {
			closest, failing = i, f
		}
	}
	return fmt.Sprintf("does not match predicate %d: %s", closest+1, strings.Join(failing, ", "))
}
