// Package profiles makes clusters from the ClusterProfiles in a Kubernetes cluster, and keeps them
// like these.
//
// A cluster goes when its profile is known to be gone, and never because profiles cannot be read.
// Clusters that users declare, or have written since, are never changed.
package profiles

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Options of an Importer. All but Faults and Logger are required.
type Options struct {
	Fleet *fleet.Fleet
	// Since is the revision from which on this server alone declares clusters.
	Since int64
	// Store writes while this server leads.
	Store interface {
		Declare(ctx context.Context, writes ...store.Write) (int64, error)
	}
	Codec interface {
		EncodeSpec(object api.Object) ([]byte, error)
	}
	// Open connects to the hub.
	Open func() (_ dynamic.Interface, disconnect func(), err error)
	Now  func() time.Time
	// Faults records panics. If nil, they are not recorded.
	Faults *fault.Component
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
}

// Importer makes clusters during a term.
type Importer struct {
	options Options
	figures *figures
	link    *hub.Link
	table   *feed.Table[profile]
	writing *hub.Work[string]

	mu      sync.Mutex
	known   map[string]map[string]profile // guarded by mu: the profiles, by name and path
	changed map[string]bool               // guarded by mu: names of which profiles have changed
	begun   bool                          // guarded by mu: all profiles have been compared with the clusters
	empty   bool                          // guarded by mu: there are no profiles at all
	refused map[string]string             // guarded by mu: why profiles are no clusters, by path
}

// New returns an Importer. Run makes it work.
func New(o Options) *Importer {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Importer{options: o, known: map[string]map[string]profile{}, changed: map[string]bool{}, refused: map[string]string{}}
	i.figures = newFigures(i)
	i.writing = hub.NewWork(o.Faults, func(name string) string { return api.Key{Kind: api.KindCluster, Name: name}.String() }, i.write, func(name string, err error) {
		i.options.Logger.Warn("a ClusterProfile could not become a cluster; it is tried again", "cluster", name, "error", err)
	})
	i.link = hub.NewLink(hub.Options{
		Open: o.Open, Faults: o.Faults,
		Note: func(failure string) {
			if failure == "" {
				o.Logger.Info("ClusterProfiles are read again")
				return
			}
			o.Logger.Warn("ClusterProfiles cannot be read: the clusters stay as they are", "error", failure)
		},
	})
	i.table = feed.NewTable(profileOf, sameProfile)
	i.table.Tell(i.see)
	hub.Watch(i.link, i.table, hub.Resource{GroupVersionResource: resource}, i.look)
	return i
}

// Run makes clusters until ctx is done.
func (i *Importer) Run(ctx context.Context) error {
	if _, err := i.options.Fleet.WaitRevision(ctx, i.options.Since); err != nil {
		return nil //nolint:nilerr // ctx is done
	}
	changes := i.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	return i.link.Run(ctx, i.writing.Run, func(ctx context.Context) error { return i.follow(ctx, changes) })
}

// see takes in changes of the profiles. It holds the lock of the table.
func (i *Importer) see(changes iter.Seq[feed.Change[profile]]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for change := range changes {
		if sameProfile(change.Old, change.New) {
			continue
		}
		if old := change.Old; old.cluster != nil {
			name := old.cluster.Metadata.Name
			i.changed[name] = true
			if i.known[name][old.path].uid == old.uid { // not of a profile that has its name by now
				delete(i.known[name], old.path)
				delete(i.refused, old.path)
			}
			if len(i.known[name]) == 0 {
				delete(i.known, name)
			}
		}
		if now := change.New; now.cluster != nil {
			name := now.cluster.Metadata.Name
			i.changed[name] = true
			if i.known[name] == nil {
				i.known[name] = map[string]profile{}
			}
			i.known[name][now.path] = now
		}
	}
}

// look compares what has changed with the clusters.
func (i *Importer) look() {
	if version, _ := i.table.State(); version == 0 {
		return
	}
	i.mu.Lock()
	names := i.changed
	i.changed = map[string]bool{}
	first, none := !i.begun || len(i.known) > 0 && i.empty, len(i.known) == 0
	if none && !i.empty {
		i.options.Logger.Warn("the Kubernetes hub has no ClusterProfile: the clusters that were made from some stay; delete those that do not exist any more")
	}
	i.begun, i.empty = true, none
	i.mu.Unlock()
	if first {
		for entry := range i.options.Fleet.Snapshot().All(api.KindCluster, "") {
			if c, ok := entry.Object.(*api.Cluster); ok && isMade(c) {
				names[c.Metadata.Name] = true
			}
		}
	}
	for name := range names {
		i.consider(name)
	}
}

// follow considers clusters that somebody changes.
func (i *Importer) follow(ctx context.Context, changes *fleet.Subscription) error {
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // ctx is done: an unbounded subscription has no other error
		}
		for _, change := range batch.Changes {
			if change.Key.Kind == api.KindCluster && (change.Old == nil || change.New == nil || change.Old.SpecRevision != change.New.SpecRevision) {
				i.consider(change.Key.Name)
			}
		}
	}
}

// consider writes a cluster if it is not as its profile says.
func (i *Importer) consider(name string) {
	if write, _, _ := i.plan(name); write != nil {
		i.writing.Due(name)
	}
}

// chosen returns the profile that describes a cluster: the one that it was made from, or else the
// first by its namespace. ok is false if there is none. known is false while profiles have not been
// read, or there are none at all: a hub without any is more likely to be another one than to have
// lost all of its clusters.
func (i *Importer) chosen(name string, current *api.Cluster) (p profile, ok, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begun {
		return profile{}, false, false
	}
	paths := i.known[name]
	for _, one := range paths {
		mine := isMade(current) && current.Spec.Claims[gitops.ProfileClaim] == one.path
		if mine || !ok || one.path < p.path {
			p, ok = one, true
		}
		if mine {
			break
		}
	}
	for path := range paths {
		why := ""
		switch {
		case path != p.path:
			why = "the cluster of its name is that of the ClusterProfile " + p.path
		case p.invalid != "":
			why = p.invalid
		case current != nil && !isMade(current):
			why = "somebody has declared a cluster of its name"
		}
		i.refuse(path, why)
	}
	return p, ok, len(i.known) > 0
}

// refuse records why a profile is no cluster; "" = it is one. The caller holds the lock.
func (i *Importer) refuse(path, why string) {
	switch why {
	case i.refused[path]:
	case "":
		delete(i.refused, path)
	default:
		i.refused[path] = why
		i.options.Logger.Warn("a ClusterProfile is no cluster", "profile", path, "error", why)
	}
}

// plan returns what to write to make a cluster as its profile says, or nil.
func (i *Importer) plan(name string) (write *store.Write, also []store.Write, cluster *api.Cluster) {
	snapshot := i.options.Fleet.Snapshot()
	key := api.Key{Kind: api.KindCluster, Name: name}
	entry := snapshot.Get(key)
	if entry == nil && snapshot.Damaged(key) != nil {
		return nil, nil, nil
	}
	var current *api.Cluster
	if entry != nil {
		current, _ = entry.Object.(*api.Cluster)
	}
	p, described, known := i.chosen(name, current)
	switch {
	case !known, described && p.invalid != "", current != nil && !isMade(current), current == nil && !described:
		return nil, nil, nil
	case !described:
		return &store.Write{Key: key, Part: store.Spec, Expect: entry.SpecRevision},
			[]store.Write{{Key: key, Part: store.Status, Expect: entry.StatusRevision, CheckOnly: true}}, current
	case current != nil && api.SameIntent(current, p.cluster):
		return nil, nil, nil
	}
	copied := *p.cluster
	copied.Metadata.Labels = maps.Clone(p.cluster.Metadata.Labels)
	write = &store.Write{Key: key, Part: store.Spec}
	now := i.options.Now().UTC()
	m := &copied.Metadata
	m.ModifiedAt = &now
	if current != nil {
		write.Expect = entry.SpecRevision
		m.UID, m.Generation, m.CreatedAt = current.Metadata.UID, current.Metadata.Generation+1, current.Metadata.CreatedAt
	} else {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails: crypto/rand crashes the program instead
		m.UID, m.Generation, m.CreatedAt = hex.EncodeToString(id[:]), 1, &now
	}
	return write, nil, &copied
}

// write makes a cluster as its profile says now.
func (i *Importer) write(ctx context.Context, name string) error {
	write, also, cluster := i.plan(name)
	if write == nil {
		return nil
	}
	result := "deleted"
	if also == nil {
		value, err := i.options.Codec.EncodeSpec(cluster)
		if err != nil {
			return err
		}
		write.Value, result = value, "written"
	}
	revision, err := i.options.Store.Declare(ctx, append([]store.Write{*write}, also...)...)
	switch {
	case errors.Is(err, store.ErrFenced):
		return nil // the term is over
	case err != nil:
		if ctx.Err() == nil {
			i.figures.writes.WithLabelValues("failed").Inc()
		}
		return err
	}
	i.figures.writes.WithLabelValues(result).Inc()
	i.options.Logger.Info("made a cluster as its ClusterProfile says", "cluster", name, "result", result, "revision", revision)
	_, err = i.options.Fleet.WaitRevision(ctx, revision)
	return err
}

// Failure returns why profiles are not read, or nil.
func (i *Importer) Failure() error { return i.link.Failure() }
