package reconcile

import (
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/google/btree"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/claim"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// snapshot is the result of a pass, and what it was based on. It is immutable, so that readers need
// not wait for the next one. It shares memory with the planner, which copies what it changes.
type snapshot struct {
	fleet, clouds, projects *columns.Fleet
	reserved                *ledger.Reservations
	load                    *ledger.Load
	records                 *btree.BTreeG[*record]
	followers               *btree.BTreeG[follower]
	waiting                 *btree.BTreeG[wait]
	policies                *claim.Rules
	quarantined             map[api.Key]*quarantined
	// taken is the snapshot of the fleet that the planner had applied.
	taken *fleet.Snapshot
	// Additional data for forks: see planner.
	held            map[api.Key][]string
	passes          int
	started         time.Time
	classes, scopes *btree.BTreeG[seen]
	views           *lru.Cache[string, *placement.View] // by engine.Query.Class
}

// maxViews is the number of views of the fleet in the cache for readers.
const maxViews = 32

// record is something that is decided, or a cloud or project, as of the last pass. It is immutable.
type record struct {
	key     *api.Key             // the query's key, for a placement
	object  api.Object           // with its status as last decided, except for a placement
	status  *api.PlacementStatus // of a placement, as last decided
	placed  *placedState         // of a placement
	binding *bindingRecord       // of a workload
	guest   *guest               // copy of a guest's state
}

// decided returns the object with its status as last decided.
func (r *record) decided() api.Object {
	if r.status != nil {
		return withStatus(as[*api.Placement](r.object), r.status)
	}
	return r.object
}

// records are the records of a planner, for the following snapshots.
type records struct {
	all       *btree.BTreeG[*record]
	differing differences // since the last snapshot
}

func (rs *records) put(r *record) {
	rs.all.ReplaceOrInsert(r)
	rs.differing.add(*r.key)
}

func (rs *records) remove(key api.Key) {
	rs.all.Delete(&record{key: &key})
	rs.differing.add(key)
}

// bindingRecord is the state of a workload.
type bindingRecord struct {
	bindingState
	at time.Time // its own time
}

// follower is a workload with the policy that it follows.
type follower struct {
	policy string // its path
	key    api.Key
}

func newRecords() *btree.BTreeG[*record] {
	return btree.NewG(16, func(a, b *record) bool { return a.key.Compare(*b.key) < 0 })
}

func newFollowers() *btree.BTreeG[follower] {
	return btree.NewG(16, func(a, b follower) bool {
		if a.policy != b.policy {
			return a.policy < b.policy
		}
		return a.key.Compare(b.key) < 0
	})
}

// following yields the workloads that follow a policy, in order.
func following(followers *btree.BTreeG[follower], policy string) func(yield func(api.Key) bool) {
	return func(yield func(api.Key) bool) {
		followers.AscendGreaterOrEqual(follower{policy: policy}, func(f follower) bool {
			return f.policy == policy && yield(f.key)
		})
	}
}

// record records the current state of an object for the following snapshots.
func (p *planner) record(key api.Key) {
	if d := p.known(key); d != nil {
		p.recordDecision(d)
		return
	}
	if i, ok := inputs[key.Kind]; ok {
		if object := i.kept(p, key); object != nil {
			p.records.put(&record{key: new(key), object: object})
			return
		}
	}
	p.records.remove(key)
}

// recordDecision is record for something that is decided.
func (p *planner) recordDecision(known decision) {
	r := &record{object: known.stored()}
	switch d := known.(type) {
	case *placementDecision:
		r.key, r.status = &d.query.Key, d.status
		if s := d.state(); d.recorded == nil || *d.recorded != s {
			d.recorded = &s
		}
		r.placed = d.recorded
	case *workloadBinding:
		if r.binding = (&bindingRecord{d.bindingState, d.at}); !sameBinding(&d.object.Status, &d.status) {
			r.object = d.result()
		}
	case *guest:
		copied := *d
		r.guest = &copied
	}
	if r.key == nil {
		r.key = new(known.key())
	}
	p.records.put(r)
}

// snapshot returns the current state. before is the previous one, or nil.
func (p *planner) snapshot(before *snapshot) *snapshot {
	s := &snapshot{
		fleet: p.fleet, clouds: p.clouds.fleet, projects: p.projects.fleet,
		reserved: p.reserved.Freeze(), load: p.load.Freeze(),
		records: p.records.all.Clone(), followers: p.bindings.followers.Clone(), policies: p.bindings.claims.Freeze(),
		held: maps.Clone(p.quarantined), passes: p.passes, started: p.started, classes: p.placer.classes.views.Clone(), scopes: p.bindings.scopes.views.Clone(),
	}
	if p.lost != nil {
		s.waiting = p.lost.waiting.Clone()
	}
	if before != nil && before.fleet == s.fleet && before.reserved == s.reserved {
		s.views = before.views
	} else {
		s.views, _ = lru.New[string, *placement.View](maxViews) // fails only for a size below 1
	}
	return s
}

// others returns the combined effect of the decisions.
func (s *snapshot) others() ledger.Others {
	return ledger.Others{Reserved: s.reserved, Load: s.load, Bindings: s}
}

// get returns the record of a key; ok is false if it is not decided.
func (s *snapshot) get(key api.Key) (d record, ok bool) {
	known, ok := s.records.Get(&record{key: &key})
	if !ok {
		return record{}, false
	}
	return *known, true
}

// ClustersOf implements engine.Bindings.
func (s *snapshot) ClustersOf(workload api.Key) []api.WorkloadCluster {
	d, _ := s.get(workload)
	if w, ok := d.object.(*api.Workload); ok {
		return w.Status.Clusters
	}
	return nil
}

// view returns the view of a query.
func (s *snapshot) view(q *placement.Query) *placement.View {
	if v, ok := s.views.Get(q.Class); ok {
		return v
	}
	v := placement.NewView(s.fleet, q, s.others(), nil)
	s.views.Add(q.Class, v)
	return v
}

// project returns the project with a path, or nil.
func (s *snapshot) project(path string) *api.OpenStackProject {
	namespace, name, _ := strings.Cut(path, "/")
	r, _ := s.get(api.Key{Kind: api.KindOpenStackProject, Namespace: namespace, Name: name})
	return as[*api.OpenStackProject](r.object)
}

// hosting returns the hosts of a kind, without guests.
func (s *snapshot) hosting(kind api.Kind) *hosts {
	silent := &basis{logger: slog.New(slog.DiscardHandler)}
	if kind == api.KindCluster {
		return &hosts{role: clustersOnClouds, basis: silent, fleet: s.clouds}
	}
	return &hosts{role: magnumInProjects(s.project), basis: silent, fleet: s.projects}
}
