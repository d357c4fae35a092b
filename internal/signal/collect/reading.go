package collect

import (
	"context"
	"errors"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// job is one reading: what to read, as of its start.
type job struct {
	ctx      context.Context
	cancel   context.CancelFunc
	provider *api.MetricsProvider
	revision int64
	latest   int64
	source   source.Source
	err      error
	full     bool // all metrics, and the provider's own status
	items    []item
}

type item struct {
	key      api.Key
	metric   *metric
	asks     []ask
	each     bool // each cluster has its own value
	revision int64
	latest   int64 // what to pass to the tracker when it is done
}

// read reads the provider. A panic while doing so counts as a failure.
func (j *job) read(key api.Key, faults *recovery.Component) (readings map[string]source.Reading, err error) {
	switch {
	case j.provider == nil:
		return nil, &source.Error{Reason: api.ReasonUnknownMetricsProvider, Message: key.String() + " does not exist"}
	case j.err != nil:
		return nil, source.Unreachable("%s", j.err)
	}
	queries := make([]string, 0, len(j.items))
	for _, it := range j.items {
		for _, a := range it.asks {
			if a.err == nil {
				queries = append(queries, a.query)
			}
		}
	}
	slices.Sort(queries)
	err = recovery.Confine(key.String(), func() (err error) {
		readings, err = j.source.Read(j.ctx, slices.Compact(queries))
		return err
	})
	if p, ok := errors.AsType[*recovery.Panic](err); ok {
		faults.Note(p)
		readings, err = nil, source.Unreachable("reading it ended with %s", p)
	}
	return conceal(j.provider, readings, err)
}

// answerTo returns the reading of one query.
func answerTo(query string, readings map[string]source.Reading, err error) source.Reading {
	reading, ok := readings[query]
	switch {
	case ok:
	case err != nil:
		reading.Err = err
	default:
		reading.Err = source.Invalid("the provider returned no value for %q", query)
	}
	return reading
}
