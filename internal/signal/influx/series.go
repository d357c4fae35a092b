package influx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// series is one series of a result, with its last value.
type series struct {
	measurement string
	field       string
	tags        map[string]string
	value       any // nil, float64, int64, uint64, json.Number, string, bool, ...
}

// key orders series by tags, then by field. Names cannot be empty, so the order is that of the
// lists of tags.
func (s *series) key() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.tags)) {
		b.WriteString(name + "\x00" + s.tags[name] + "\x00")
	}
	return b.String() + "\x00" + s.field
}

// matches reports whether a selector of the same measurement matches the series.
func (s *series) matches(by *selector) bool {
	if by.field != "" && by.field != s.field {
		return false
	}
	for _, t := range by.tags {
		if s.tags[t.name] != t.value {
			return false
		}
	}
	return true
}

// choice holds, for each of several selectors, the series to use: the first by key. It is
// deterministic, but a metric should specify which series it means.
type choice struct {
	all           []*chosen
	byMeasurement map[string][]*chosen
}

type chosen struct {
	term  term
	first *series
	key   string
}

func newChoice(batch []term) *choice {
	c := &choice{byMeasurement: map[string][]*chosen{}}
	for _, t := range batch {
		one := &chosen{term: t}
		c.all = append(c.all, one)
		c.byMeasurement[t.selector.measurement] = append(c.byMeasurement[t.selector.measurement], one)
	}
	return c
}

// offer considers a series.
func (c *choice) offer(s *series) {
	key := ""
	for _, candidate := range c.byMeasurement[s.measurement] {
		if !s.matches(&candidate.term.selector) {
			continue
		}
		if key == "" {
			key = s.key()
		}
		if candidate.first == nil || key < candidate.key {
			candidate.first, candidate.key = s, key
		}
	}
}

// reading returns the value, or what is wrong with it.
func (c *chosen) reading(bucket string) source.Reading {
	by := &c.term.selector
	if c.first == nil {
		what := fmt.Sprintf("measurement %q", by.measurement)
		if by.field != "" {
			what += fmt.Sprintf(", field %q", by.field)
		}
		for _, t := range by.tags {
			what += fmt.Sprintf(", tag %s=%q", t.name, t.value)
		}
		hint := ""
		if by.dotted {
			hint = fmt.Sprintf(`; a measurement with a dot in its name must be in quotes: "%s.%s"`, by.measurement, by.field)
		}
		return source.Reading{Err: source.Invalid("no value in the last hour in bucket %q: %s%s", bucket, what, hint)}
	}
	value, err := number(c.first.value)
	if err != nil {
		return source.Reading{Err: source.Invalid("the last value of %s is %s: it should be a number; if there are several fields, name one, as in %s.field",
			selector{measurement: c.first.measurement, field: c.first.field}, err, quoteName(by.measurement))}
	}
	return source.Reading{Value: value}
}
