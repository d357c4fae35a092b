package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// HistoryOptions select entries of the history. The zero value of a field selects all.
type HistoryOptions struct {
	Kind            api.Kind
	Namespace, Name string
	// Cluster selects what moved to it or from it.
	Cluster string
	// Since is included, Until is not.
	Since, Until time.Time
	// Limit is the largest number of entries in a page. Zero means the server's default.
	Limit int
}

func (o HistoryOptions) query() url.Values {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("kind", string(o.Kind))
	set("namespace", o.Namespace)
	set("name", o.Name)
	set("cluster", o.Cluster)
	if !o.Since.IsZero() {
		set("since", o.Since.UTC().Format(time.RFC3339Nano))
	}
	if !o.Until.IsZero() {
		set("until", o.Until.UTC().Format(time.RFC3339Nano))
	}
	if o.Limit > 0 {
		set("limit", strconv.Itoa(o.Limit))
	}
	return query
}

// History yields the pages of the history of decisions, the newest entries first. Some may be empty.
// After an error, there are no more.
func (c *Client) History(ctx context.Context, options HistoryOptions) iter.Seq2[*api.HistoryPage, error] {
	return func(yield func(*api.HistoryPage, error) bool) {
		query := options.query()
		for {
			page := &api.HistoryPage{}
			if err := c.read(ctx, &call{method: http.MethodGet, path: "/v1/history", query: query, repeatable: true}, page); err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) || page.Continue == "" {
				return
			}
			query.Set("continue", page.Continue)
		}
	}
}
