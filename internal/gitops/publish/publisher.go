// Package publish writes the decisions of placements into a Kubernetes cluster, as objects that
// controllers read: PlacementDecisions of SIG Multicluster and of Open Cluster Management.
//
// Controllers delete what they have made for a cluster that is missing in them. So a decision is
// written only when the server knows it, as package gitops has it; until then its objects stay as
// they are. They are deleted with the placement. Objects that the server has not made for the same
// store are never changed: neither those of others, nor those of a store that this one replaces.
package publish

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/slicing"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
)

// Options of a Publisher. All but Faults and Logger are required.
type Options struct {
	Fleet *fleet.Fleet
	// Since is the revision from which on this server alone decides: what was decided before must
	// have been seen first.
	Since int64
	// Store is the identity of the store.
	Store string
	APIs  []API
	// Open connects to the hub.
	Open func() (_ dynamic.Interface, disconnect func(), err error)
	// Faults records panics. If nil, they are not recorded.
	Faults *fault.Component
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
}

// Publisher writes decisions during a term.
type Publisher struct {
	options    Options
	figures    *figures
	link       *hub.Link
	namespaces *feed.Table[string]
	objects    map[API]*feed.Table[object]
	writing    *hub.Work[target]

	mu      sync.Mutex
	known   map[target]map[int]object // guarded by mu: the objects in the hub, by number
	there   map[string]bool           // guarded by mu: the namespaces of the hub
	changed map[target]bool           // guarded by mu: those whose objects have changed
	arrived map[string]bool           // guarded by mu: namespaces that have appeared
	begun   map[API]bool              // guarded by mu: APIs whose objects have been compared with all decisions
	kept    map[target]bool           // guarded by mu: those that stay as they are although the decision is not known
}

// target is a decision in the form of an API.
type target struct {
	api       API
	placement api.Key
}

// String returns the target for messages.
func (t target) String() string { return t.placement.String() + " for " + string(t.api) }

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// errNoIdentity says that nobody could tell the objects of this store from those of others.
var errNoIdentity = errors.New("the store is too full to have an identity, by which it recognizes its objects: make room, and restart the server")

// New returns a Publisher. Run makes it work.
func New(o Options) *Publisher {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Publisher{
		options: o, objects: map[API]*feed.Table[object]{}, known: map[target]map[int]object{}, there: map[string]bool{},
		changed: map[target]bool{}, arrived: map[string]bool{}, begun: map[API]bool{}, kept: map[target]bool{},
	}
	if o.Store == "" {
		o.Open = func() (dynamic.Interface, func(), error) { return nil, nil, errNoIdentity }
	}
	p.figures = newFigures(p)
	p.writing = hub.NewWork(o.Faults, target.String, p.write, p.failed)
	p.link = hub.NewLink(hub.Options{
		Open: o.Open, Faults: o.Faults,
		Note: func(failure string) {
			if failure == "" {
				o.Logger.Info("decisions are written to the Kubernetes hub again")
				return
			}
			o.Logger.Warn("decisions are not written to the Kubernetes hub", "error", failure)
		},
	})
	p.namespaces = feed.NewTable(func(o runtime.Object) (string, bool) {
		u, ok := o.(*unstructured.Unstructured)
		return u.GetName(), ok
	}, func(a, b string) bool { return a == b })
	p.namespaces.Tell(p.seeNamespaces)
	hub.Watch(p.link, p.namespaces, hub.Resource{GroupVersionResource: namespaces}, p.look)
	for _, name := range o.APIs {
		f := formats[name]
		table := feed.NewTable(func(o runtime.Object) (object, bool) {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				return object{}, false
			}
			return f.read(u)
		}, sameObject)
		table.Tell(func(changes iter.Seq[feed.Change[object]]) { p.seeObjects(name, changes) })
		p.objects[name] = table
		hub.Watch(p.link, table, hub.Resource{GroupVersionResource: f.resource, Labels: p.selector()}, p.look)
	}
	return p
}

// selector selects the objects of this store.
func (p *Publisher) selector() string {
	return managedByLabel + "=" + managedBy + "," + storeLabel + "=" + p.options.Store
}

func sameObject(a, b object) bool {
	return a.uid == b.uid && a.placement == b.placement && a.Number == b.Number && a.Group == b.Group && a.Hidden == b.Hidden && slices.Equal(a.Clusters, b.Clusters)
}

// Run writes decisions until ctx is done.
func (p *Publisher) Run(ctx context.Context) error {
	if _, err := p.options.Fleet.WaitRevision(ctx, p.options.Since); err != nil {
		return nil //nolint:nilerr // ctx is done
	}
	changes := p.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true}) // before the objects are listed, so that none is missed
	return p.link.Run(ctx, p.writing.Run, func(ctx context.Context) error { return p.follow(ctx, changes) })
}

// seeObjects takes in changes of the objects in the hub. It holds the lock of the table.
func (p *Publisher) seeObjects(name API, changes iter.Seq[feed.Change[object]]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for change := range changes {
		if change.Old.uid == change.New.uid && sameObject(change.Old, change.New) {
			continue
		}
		if old := change.Old; old.Number != 0 {
			t := target{name, old.placement}
			if p.known[t][old.Number].uid == old.uid { // not of another object that has its name by now
				if delete(p.known[t], old.Number); len(p.known[t]) == 0 {
					delete(p.known, t)
				}
			}
			p.changed[t] = true
		}
		if now := change.New; now.Number != 0 {
			t := target{name, now.placement}
			if p.known[t] == nil {
				p.known[t] = map[int]object{}
			}
			p.known[t][now.Number] = now
			p.changed[t] = true
		}
	}
}

// seeNamespaces takes in changes of the namespaces of the hub.
func (p *Publisher) seeNamespaces(changes iter.Seq[feed.Change[string]]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for change := range changes {
		if change.New == "" {
			delete(p.there, change.Old)
			continue
		}
		if !p.there[change.New] {
			p.there[change.New], p.arrived[change.New] = true, true
		}
	}
}

// look compares what has changed in the hub with the decisions.
func (p *Publisher) look() {
	if version, _ := p.namespaces.State(); version == 0 {
		return
	}
	for name, table := range p.objects {
		version, _ := table.State()
		p.mu.Lock()
		first := version > 0 && !p.begun[name]
		p.begun[name] = p.begun[name] || first
		p.mu.Unlock()
		if first {
			p.considerAll(name)
		}
	}
	p.mu.Lock()
	changed, arrived := p.changed, p.arrived
	p.changed, p.arrived = map[target]bool{}, map[string]bool{}
	p.mu.Unlock()
	for t := range changed {
		p.consider(t)
	}
	for namespace := range arrived {
		for entry := range p.options.Fleet.Snapshot().All(api.KindPlacement, namespace) {
			p.considerKey(api.KeyOf(entry.Object))
		}
	}
}

// considerAll compares all decisions with their objects.
func (p *Publisher) considerAll(name API) {
	for entry := range p.options.Fleet.Snapshot().All(api.KindPlacement, "") {
		p.consider(target{name, api.KeyOf(entry.Object)})
	}
	p.mu.Lock()
	var all []target
	for t := range p.known {
		if t.api == name {
			all = append(all, t)
		}
	}
	p.mu.Unlock()
	for _, t := range all { // among them those whose placement was deleted
		p.consider(t)
	}
}

func (p *Publisher) considerKey(placement api.Key) {
	for name := range p.objects {
		p.consider(target{name, placement})
	}
}

// consider writes a decision if its objects differ from it.
func (p *Publisher) consider(t target) {
	parts, known := p.decision(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun[t.api] {
		return
	}
	if delete(p.kept, t); !known && len(p.known[t]) > 0 {
		p.kept[t] = true
	}
	if !known || !p.there[t.placement.Namespace] {
		return
	}
	present := make([]slicing.Slice, 0, len(p.known[t]))
	for _, o := range p.known[t] {
		present = append(present, o.Slice)
	}
	if len(slicing.Steps(present, parts)) > 0 {
		p.writing.Due(t)
	}
}

// decision returns a decision in the form of an API; no parts if the placement is deleted. known is
// false if the server does not know the decision.
func (p *Publisher) decision(t target) (parts []slicing.Part, known bool) {
	snapshot := p.options.Fleet.Snapshot()
	if snapshot.Get(t.placement) == nil {
		return nil, snapshot.Damaged(t.placement) == nil
	}
	// The age of the store does not matter: only the leader writes, whose decisions are the newest.
	source := gitops.Source{Objects: snapshot, MayRead: func(api.Object) error { return nil }}
	decision, err := source.Decision(t.placement)
	if err != nil {
		return nil, false
	}
	return formats[t.api].parts(decision, func(cluster string) string {
		entry := snapshot.Get(api.Key{Kind: api.KindCluster, Name: cluster})
		if entry != nil {
			if profile := profileOf(entry.Object); profile != "" {
				return profile
			}
		}
		return "/" + cluster
	}), true
}

// profileOf returns the ClusterProfile that a cluster's claim names, or "".
func profileOf(object api.Object) string {
	c, ok := object.(*api.Cluster)
	if !ok {
		return ""
	}
	profile := c.Spec.Claims[gitops.ProfileClaim]
	if namespace, name, ok := strings.Cut(profile, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return ""
	}
	return profile
}

// follow considers decisions that change.
func (p *Publisher) follow(ctx context.Context, changes *fleet.Subscription) error {
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // ctx is done: an unbounded subscription has no other error
		}
		moved := map[string]bool{} // clusters whose profile has another name
		for _, change := range batch.Changes {
			old, now := change.Objects()
			switch change.Key.Kind {
			case api.KindPlacement:
				if gitops.Differ(old, now) {
					p.considerKey(change.Key)
				}
			case api.KindCluster:
				if profileOf(old) != profileOf(now) {
					moved[change.Key.Name] = true
				}
			default:
			}
		}
		if batch.Passed {
			for name := range p.objects {
				p.considerAll(name)
			}
		}
		if len(moved) > 0 && p.objects[Multicluster] != nil {
			p.considerOn(moved)
		}
	}
}

// considerOn considers the decisions that contain clusters.
func (p *Publisher) considerOn(clusters map[string]bool) {
	for entry := range p.options.Fleet.Snapshot().All(api.KindPlacement, "") {
		if placement, ok := entry.Object.(*api.Placement); ok && slices.ContainsFunc(placement.Status.Clusters, func(name string) bool { return clusters[name] }) {
			p.consider(target{Multicluster, api.KeyOf(placement)})
		}
	}
}

// Failure returns why decisions are not written, or nil.
func (p *Publisher) Failure() error { return p.link.Failure() }
