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

// A host is what something is created on: a cloud for a cluster, an OpenStack
// project for a Magnum cluster. Hosts are rows of a Fleet of their own, and the
// choice is the decision that placements get: label and metric constraints, then
// the weighted mean of the metrics, without stickiness, since nothing is moved.

// CloudHost is a cloud as a row.
func CloudHost(c *api.Cloud) *api.Cluster {
	return &api.Cluster{
		Kind:     api.KindCluster,
		Metadata: api.Metadata{Name: c.Metadata.Name, UID: c.Metadata.UID, Generation: 2, Labels: c.Metadata.Labels},
		Spec:     api.ClusterSpec{Namespace: c.Spec.Namespace, Metrics: c.Spec.Metrics},
	}
}

// ProjectHost is an OpenStack project as a row. Its name is that of its path, as
// projects of two namespaces may have one name.
func ProjectHost(p *api.OpenStackProject) *api.Cluster {
	return &api.Cluster{
		Kind:     api.KindCluster,
		Metadata: api.Metadata{Name: api.KeyOf(p).Path(), UID: p.Metadata.UID, Generation: 2, Labels: p.Metadata.Labels},
		Spec:     api.ClusterSpec{Namespace: p.Metadata.Namespace, Metrics: p.Spec.Metrics},
	}
}

// HostRequest is what a guest asks of its host.
type HostRequest struct {
	// Guest is what is to be created, and UID tells it from earlier ones.
	Guest api.Key
	UID   string
	// Namespace is the one whose hosts it sees besides those of nobody.
	Namespace                           string
	LabelConstraints, MetricConstraints []string
	// One and Many name hosts in sentences: "cloud", "clouds".
	One, Many string
	// Desperate takes a host with a failing metric where no other fits.
	Desperate bool
}

// HostQuery is a HostRequest made ready to decide. Immutable.
type HostQuery struct {
	request HostRequest
	query   *placement.Query // hosts whose metrics have values
	mild    *placement.Query // likewise those whose metrics fail
	present *placement.Query // likewise whatever the values of metrics are
}

// NewHostQuery compiles a request. The error is that of one that never should have
// passed validation.
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

// Choose is the host for a guest, with its score. A host of the guest's own
// namespace goes before one of nobody, whatever their scores
// (reference: "global clouds are tried only if no namespaced cloud matches"). view is
// what all queries of a class see of the hosts.
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

// Fits reports whether a host that was chosen before still fits what the guest
// asks for. Metrics were asked when it was chosen: what was created is not moved
// because a figure has changed. They are asked again where the guest asks for
// others than then.
func (h *HostQuery) Fits(f *columns.Fleet, host string, others bool) bool {
	row, ok := f.Row(host)
	if others {
		return ok && placement.Admits(f, h.mild, nil, row, true)
	}
	return ok && placement.Admits(f, h.present, nil, row, true)
}

// Unread is a metric that has not been read yet of a host that may fit; "" where
// there is none. A choice made without its value would stay.
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

// MetricConstraints are those that the guest asks for.
func (h *HostQuery) MetricConstraints() []string { return h.request.MetricConstraints }

// Sentence says how many hosts fit, and why the others do not.
func (h *HostQuery) Sentence(f *columns.Fleet) string {
	return placement.Sentence(f, h.query, ledger.Others{})
}

// Explain says why the guest has its host, or, where it has none, why no host
// fits.
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
		for i := range x.Candidates { // projects are of the guest's own namespace
			x.Candidates[i].Cluster = strings.TrimPrefix(x.Candidates[i].Cluster, prefix)
		}
		x.Summary = strings.ReplaceAll(x.Summary, prefix, "")
	}
	return x
}

// keepHost corrects an explanation where the host does not fit any more, and stays
// all the same: what was created on it is there.
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
