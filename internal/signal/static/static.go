// Package static implements the metrics provider whose values are in its own spec.
package static

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// Type is the provider type "static".
var Type = source.Type{Name: api.ProviderStatic, Constant: true, New: open}

// shownNames is how many names a message lists; further ones are only counted.
const shownNames = 10

type table struct{ values map[string]float64 }

func open(provider *api.MetricsProvider, _ *addresspolicy.Policy) (source.Source, error) {
	if provider.Spec.Static == nil {
		return table{}, nil
	}
	return table{provider.Spec.Static.Metrics}, nil
}

// Read looks up the names.
func (t table) Read(_ context.Context, queries []string) (map[string]source.Reading, error) {
	out := make(map[string]source.Reading, len(queries))
	for _, query := range queries {
		if value, ok := t.values[query]; ok {
			out[query] = source.Reading{Value: value}
		} else {
			out[query] = source.Reading{Err: source.Invalid("static.metrics has no %q; it has %s", query, t.names())}
		}
	}
	return out, nil
}

// Close implements source.Source.
func (table) Close() {}

func (t table) names() string {
	names := slices.Sorted(maps.Keys(t.values))
	if len(names) == 0 {
		return "no metrics"
	}
	more := ""
	if len(names) > shownNames {
		more = " and " + strconv.Itoa(len(names)-shownNames) + " more"
		names = names[:shownNames]
	}
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return strings.Join(names, ", ") + more
}
