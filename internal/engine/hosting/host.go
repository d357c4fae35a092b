package hosting

import (
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// A host is what a guest is created on: a cloud for a cluster, an OpenStack project for a Magnum
// cluster. Hosts are the rows of a separate Fleet. A host is chosen in the same way as the cluster
// of a placement: label and metric constraints, then the weighted mean of the metrics, but without
// stickiness, because nothing is moved.

// CloudHost returns a cloud as a row.
func CloudHost(c *api.Cloud) *api.Cluster {
	return &api.Cluster{
		Kind:     api.KindCluster,
		Metadata: api.Metadata{Name: c.Metadata.Name, UID: c.Metadata.UID, Generation: 2, Labels: c.Metadata.Labels},
		Spec:     api.ClusterSpec{Namespace: c.Spec.Namespace, Metrics: c.Spec.Metrics},
	}
}

// ProjectHost returns an OpenStack project as a row. It is named by its path, because projects in
// different namespaces may have the same name.
func ProjectHost(p *api.OpenStackProject) *api.Cluster {
	return &api.Cluster{
		Kind:     api.KindCluster,
		Metadata: api.Metadata{Name: api.KeyOf(p).Path(), UID: p.Metadata.UID, Generation: 2, Labels: p.Metadata.Labels},
		Spec:     api.ClusterSpec{Namespace: p.Metadata.Namespace, Metrics: p.Spec.Metrics},
	}
}

// HostRequest is what a guest requires of its host.
type HostRequest struct {
	// Guest is the object to be created. UID distinguishes it from earlier ones of the same name.
	Guest api.Key
	UID   string
	// Namespace is the namespace whose hosts are visible, in addition to hosts without an owner.
	Namespace                           string
	LabelConstraints, MetricConstraints []string
	// One and Many name hosts in messages: "cloud", "clouds".
	One, Many string
	// Desperate accepts a host with a failing metric if no other fits.
	Desperate bool
}

// HostQuery is a compiled HostRequest. Immutable.
type HostQuery struct {
	request HostRequest
	query   *placement.Query // hosts whose metrics have values
	mild    *placement.Query // also hosts whose metrics fail
	present *placement.Query // ignores metric values
}

// NewHostQuery compiles a request. It fails only for a request that should not have passed
// validation.
func NewHostQuery(r HostRequest) (*HostQuery, error) {
	stickiness := 0.0
	asked := api.Placement{
		Metadata: api.Metadata{Namespace: r.Namespace, Name: r.Guest.Name, UID: r.UID},
		Spec: api.PlacementSpec{
			LabelConstraints: r.LabelConstraints, MetricConstraints: r.MetricConstraints,
			Strategy: api.StrategyMetrics, Metrics: &api.MetricsStrategy{Stickiness: &stickiness},
			MetricConstraintBasis: api.BasisRaw,
		},
	}
	h := &HostQuery{request: r}
	unmeasured := asked
	unmeasured.Spec.MetricConstraints = nil
	for _, made := range []struct {
		query        **placement.Query
		placement    *api.Placement
		takesFailing bool
	}{{&h.query, &asked, false}, {&h.mild, &asked, true}, {&h.present, &unmeasured, true}} {
		query, err := placement.Compile(made.placement, made.takesFailing)
		if err != nil {
			return nil, err
		}
		query.Key, query.Migration = r.Guest, false
		query.One, query.Many = r.One, r.Many
		*made.query = query
	}
	return h, nil
}

// Choose returns the host for a guest, and its score. Hosts of the guest's own namespace take
// precedence over hosts without an owner, whatever their scores (reference: "global clouds are
// tried only if no namespaced cloud matches"). view returns the view that queries of a class share.
func (h *HostQuery) Choose(f *columns.Fleet, view func(*placement.Query) *placement.View, now time.Time) (host string, score float64, ok bool) {
	queries := []*placement.Query{h.query}
	if h.request.Desperate {
		queries = append(queries, h.mild)
	}
	var first placement.Choice
	for _, owned := range []bool{true, false} {
		for _, q := range queries {
			out := placement.Decide(f, q, view(q), ledger.Others{}, placement.Present{}, now)
			for _, c := range out.Choices {
				if (len(f.Cluster(c.Row).Owners()) > 0) == owned {
					first, ok = c, true
					break
				}
			}
			if ok {
				return f.Name(first.Row), first.Score, true
			}
		}
	}
	return "", 0, false
}

// Fits reports whether a host that was chosen earlier still meets the guest's requirements. Metric
// constraints are checked only if they have changed since the choice: a guest is not moved because
// a metric value changed.
func (h *HostQuery) Fits(f *columns.Fleet, host string, others bool) bool {
	if others {
		return keeps(f, h.mild, host)
	}
	return keeps(f, h.present, host)
}

// Keeps reports whether a host that was chosen earlier meets all requirements, as far as its metrics
// can be read at present.
func (h *HostQuery) Keeps(f *columns.Fleet, host string) bool {
	return keeps(f, h.query, host)
}

func keeps(f *columns.Fleet, q *placement.Query, host string) bool {
	row, ok := f.Row(host)
	return ok && placement.Admits(f, q, nil, row, true)
}

// Unread returns a metric of a host that may fit but whose value has not been read yet, or "". The
// choice should wait for it, because it is permanent.
func (h *HostQuery) Unread(f *columns.Fleet) string {
	for _, row := range f.ByName() {
		for _, m := range f.Rows()[row].Metrics {
			if s := f.MetricOf(int(row), m); s.Reason == api.ReasonPending && placement.Admits(f, h.present, nil, int(row), false) {
				return s.Key.Path()
			}
		}
	}
	return ""
}

// MetricConstraints returns the guest's metric constraints.
func (h *HostQuery) MetricConstraints() []string { return h.request.MetricConstraints }

// Sentence says how many hosts fit, and why the others do not.
func (h *HostQuery) Sentence(f *columns.Fleet) string {
	return placement.Sentence(f, h.query, ledger.Others{})
}

// Explain explains why the guest has its host or, if it has none, why no host fits.
func (h *HostQuery) Explain(f *columns.Fleet, host string, now time.Time) *api.Explanation {
	query := *h.query
	if row, ok := f.Row(host); ok && !placement.Admits(f, &query, nil, row, true) && h.Fits(f, host, false) {
		query = *h.present
	}
	query.Wanted = 1
	present := placement.Present{Answered: true}
	if host != "" {
		present.Decisions = []api.Decision{{Cluster: host}}
	}
	explained := placement.Explain(f, &query, nil, ledger.Others{}, present, now)
	x := explained.Render()
	keepHost(x, host, explained)
	x.Kind, x.Namespace = h.request.Guest.Kind, h.request.Guest.Namespace
	if prefix := h.request.Guest.Namespace + "/"; prefix != "/" {
		for i := range x.Candidates { // projects are in the guest's own namespace
			x.Candidates[i].Cluster = strings.TrimPrefix(x.Candidates[i].Cluster, prefix)
		}
		x.Summary = strings.ReplaceAll(x.Summary, prefix, "")
	}
	return x
}

// keepHost corrects an explanation if the host no longer fits but is kept, because the guest exists
// on it.
func keepHost(x *api.Explanation, host string, explained *placement.Explained) {
	at := slices.IndexFunc(x.Candidates, func(c api.Candidate) bool { return c.Cluster == host })
	if at < 0 || x.Candidates[at].Selected {
		return
	}
	for i := range x.Candidates {
		x.Candidates[i].Selected = i == at
	}
	kept := x.Candidates[at]
	x.Candidates = slices.Insert(slices.Delete(x.Candidates, at, at+1), 0, kept)
	x.Kept = string(placement.KeptByMigration)
	x.Summary = host + " was chosen before and stays; at present " + explained.Sentence()
}
