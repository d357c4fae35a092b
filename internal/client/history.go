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
	Kind      api.Kind
	Namespace string
	Name      string
	// Cluster selects what moved to it or from it.
	Cluster string
	Cause   api.CauseType
	// Since is included, Until is not.
	Since, Until time.Time
	// Oldest returns the oldest entries first.
	Oldest bool
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
	set("cause", string(o.Cause))
	for name, at := range map[string]time.Time{"since": o.Since, "until": o.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if o.Oldest {
		query.Set("order", "oldest")
	}
	return query
}

// historyPageSize is the number of entries per request.
const historyPageSize = 200

// History yields the entries of the history, the newest first by default, page by page: who wants
// few stops early. After an error, there are no more.
func (c *Client) History(ctx context.Context, options HistoryOptions) iter.Seq2[api.HistoryEntry, error] {
	return func(yield func(api.HistoryEntry, error) bool) {
		query := options.query()
		query.Set("limit", strconv.Itoa(historyPageSize))
		for {
			page := &api.HistoryPage{}
			if err := c.read(ctx, &call{method: http.MethodGet, path: "/v1/history", query: query, repeatable: true}, page); err != nil {
				yield(api.HistoryEntry{}, err)
				return
			}
			for _, entry := range page.Items {
				if !yield(entry, nil) {
					return
				}
			}
			if page.Continue == "" {
				return
			}
			query.Set("continue", page.Continue)
		}
	}
}

// ExplainAt is Explain for a decision as it was at a revision of the store, or at a time in RFC 3339.
// A 410 *api.Problem says that it is no longer kept.
func (c *Client) ExplainAt(ctx context.Context, key api.Key, at string) (*api.Explanation, error) {
	explanation := &api.Explanation{}
	q := &call{method: http.MethodGet, path: key.URLPath() + "/explanation", query: url.Values{"at": {at}}, repeatable: true}
	if err := c.read(ctx, q, explanation); err != nil {
		return nil, err
	}
	return explanation, nil
}
