//go:build faults

package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// The oracles, in the order of the letters in the table. Each is a function of what was observed, so that it can be
// tested with false histories (see lies_test.go).

// oracleAcknowledged (a) checks that every acknowledged write exists, and nothing that was never written.
func oracleAcknowledged(l *ledger, there map[api.Key]api.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for key, e := range l.entries {
		object := there[key]
		is := state{gone: true}
		if object != nil {
			is = state{number: numberOf(object)}
		}
		possible := append([]state{e.last}, e.doubtful...)
		if e.last.number == 0 {
			possible[0].gone = true // it never existed
		}
		if !slices.ContainsFunc(possible, func(s state) bool { return s.gone && is.gone || !s.gone && s.number == is.number }) {
			errs = append(errs, fmt.Errorf("%s is %+v, but %+v was acknowledged, and %+v had no answer", key, is, e.last, e.doubtful))
			continue
		}
		if object != nil && e.object != nil && is.number == e.last.number {
			if want, got := e.object.Meta(), object.Meta(); want.UID != got.UID || want.Generation > got.Generation || !reflect.DeepEqual(e.object.SpecPart(), object.SpecPart()) {
				errs = append(errs, fmt.Errorf("%s was acknowledged as %+v, but is %+v", key, e.object, object))
			}
		}
	}
	for key, object := range there {
		if l.entries[key] == nil && numberOf(object) > 0 {
			errs = append(errs, fmt.Errorf("%s exists, but was never written", key))
		}
	}
	return errors.Join(errs...)
}

// settle resolves the unknown writes in the ledger by what exists.
func (l *ledger) settle(there map[api.Key]api.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.entries {
		e.doubtful, e.object = nil, there[key]
		if e.object == nil {
			e.last.gone = true
		} else {
			e.last = state{number: numberOf(e.object)}
		}
	}
}

// sighting is one observation of an object with a decision.
type sighting struct {
	stream              int // where it was observed; observations in one stream are ordered
	key                 api.Key
	uid                 string
	version, generation int64
	observed, decision  int64 // generation that the decision answers; number of its changes
	clusters            []string
	group               string // group that the spec of this generation allows; "" = unknown
	most                int64  // number of clusters that it allows
}

func sight(object api.Object) (sighting, bool) {
	m := object.Meta()
	version, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
	if err != nil {
		return sighting{}, false
	}
	s := sighting{key: api.KeyOf(object), uid: m.UID, version: version, generation: m.Generation}
	switch o := object.(type) {
	case *api.Placement:
		s.observed, s.decision, s.clusters = o.Status.ObservedGeneration, o.Status.DecisionRevision, o.Status.Clusters
		if o.Spec.NumberOfClusters == nil || len(o.Spec.LabelConstraints) != 1 {
			return sighting{}, false // not an object of this test
		}
		s.group, s.most = strings.TrimPrefix(o.Spec.LabelConstraints[0], groupLabel+" is "), *o.Spec.NumberOfClusters
	case *api.Workload:
		s.observed, s.decision, s.group, s.most = o.Status.ObservedGeneration, o.Status.DecisionRevision, groupName(0), clustersPerGroup
		for _, c := range o.Status.Clusters {
			s.clusters = append(s.clusters, fmt.Sprintf("%s=%d", c.Name, c.Replicas))
		}
	default:
		return sighting{}, false
	}
	return s, true
}

// oracleConstraints (b): no decision violates the constraints of the spec that
// it answers. It returns how many decisions it looked at.
func oracleConstraints(sightings []sighting) (looked int, err error) {
	type version struct {
		uid        string
		generation int64
	}
	specs := map[version]sighting{}
	for _, s := range sightings {
		specs[version{s.uid, s.generation}] = s
	}
	var errs []error
	for _, s := range sightings {
		spec, known := specs[version{s.uid, s.observed}]
		if s.observed == 0 || !known {
			continue
		}
		looked++
		if int64(len(s.clusters)) > spec.most {
			errs = append(errs, fmt.Errorf("%s at %d: %v are more than %d clusters", s.key, s.version, s.clusters, spec.most))
		}
		for _, cluster := range s.clusters {
			name, _, _ := strings.Cut(cluster, "=")
			if groupOf(name) != spec.group {
				errs = append(errs, fmt.Errorf("%s at %d: generation %d asks for %s, %s is in %s", s.key, s.version, s.observed, spec.group, name, groupOf(name)))
			}
		}
	}
	return looked, errors.Join(errs...)
}

// oracleOrder (c): no stream shows an object older than before; in the order of
// the versions nothing that counts goes back, over all servers that there were;
// and a decision that changes is counted.
func oracleOrder(sightings []sighting) error {
	var errs []error
	type place struct {
		stream int
		uid    string
	}
	last := map[place]sighting{}
	versions := map[string][]sighting{}
	for _, s := range sightings {
		if before, ok := last[place{s.stream, s.uid}]; ok && s.version < before.version {
			errs = append(errs, fmt.Errorf("a stream showed %+v after %+v", s, before))
		}
		last[place{s.stream, s.uid}] = s
		versions[s.uid] = append(versions[s.uid], s)
	}
	for _, list := range versions {
		slices.SortStableFunc(list, func(a, b sighting) int { return cmp.Compare(a.version, b.version) })
		for i := 1; i < len(list); i++ {
			before, s := list[i-1], list[i]
			s.stream = before.stream
			switch {
			case s.generation < before.generation, s.observed < before.observed, s.decision < before.decision:
				errs = append(errs, fmt.Errorf("%s went back from %+v to %+v", s.key, before, s))
			case s.version == before.version && !reflect.DeepEqual(s, before):
				errs = append(errs, fmt.Errorf("%s differs at one version: %+v and %+v", s.key, before, s))
			case s.decision == before.decision && before.observed > 0 && !sameClusters(s.clusters, before.clusters):
				errs = append(errs, fmt.Errorf("%s moved from %v to %v and does not count it", s.key, before.clusters, s.clusters))
			}
		}
	}
	return errors.Join(errs...)
}

// sameClusters compares two decisions regardless of their order.
func sameClusters(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// derivation is a write of derived state as the store saw it: its revision, and the fence at that revision.
type derivation struct {
	revision int64
	writer   string // the only server that could have written it then
}

// oracleFence (d) checks that one server decides. leaders are the servers that say that they lead; derived was written
// while only the other servers were running, which had lost the store.
func oracleFence(leaders []string, derived []derivation) error {
	var errs []error
	if len(leaders) != 1 {
		errs = append(errs, fmt.Errorf("%d servers lead, want 1: %v", len(leaders), leaders))
	}
	for _, d := range derived {
		errs = append(errs, fmt.Errorf("revision %d is a decision of %s, which was no longer the leader", d.revision, d.writer))
	}
	return errors.Join(errs...)
}

// figures are what may leak.
type figures struct {
	goroutines, descriptors int
	resident                int64
}

// The tolerated difference between a server that went through a fault and one that did not.
const (
	extraGoroutines  = 40
	extraDescriptors = 24
	extraResident    = 256 << 20
)

// oracleLeaks (e) checks that the server uses no more than one that was just started with the same objects, within
// limits.
func oracleLeaks(is, fresh figures) error {
	var errs []error
	if is.goroutines > fresh.goroutines+extraGoroutines {
		errs = append(errs, fmt.Errorf("%d goroutines, but a fresh server has %d", is.goroutines, fresh.goroutines))
	}
	if is.descriptors > fresh.descriptors+extraDescriptors {
		errs = append(errs, fmt.Errorf("%d open files, but a fresh server has %d", is.descriptors, fresh.descriptors))
	}
	if is.resident > fresh.resident+extraResident {
		errs = append(errs, fmt.Errorf("%d MiB resident, but a fresh server has %d", is.resident>>20, fresh.resident>>20))
	}
	return errors.Join(errs...)
}

func (p *process) figures() (figures, error) {
	goroutines, err := p.figure("go_goroutines")
	if err != nil {
		return figures{}, err
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return figures{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return figures{}, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return figures{int(goroutines), len(open), kib << 10}, err
		}
	}
	return figures{}, errors.New("/proc says nothing about memory")
}

// decisions returns the clusters of every object that has some.
func decisions(objects map[api.Key]api.Object) map[api.Key][]string {
	out := map[api.Key][]string{}
	for key, object := range objects {
		switch o := object.(type) {
		case *api.Placement:
			out[key] = o.Status.Clusters
		case *api.Workload:
			var clusters []string
			for _, c := range o.Status.Clusters {
				clusters = append(clusters, fmt.Sprintf("%s=%d", c.Name, c.Replicas))
			}
			out[key] = clusters
		}
	}
	return out
}

// oracleConvergence (f) checks that the decisions equal those of a fresh server with the same objects. The order of the
// clusters may differ, because it dates from when they were chosen.
func oracleConvergence(is, fresh map[api.Key][]string) error {
	var errs []error
	for _, key := range slices.SortedFunc(maps.Keys(is), api.Key.Compare) {
		if other, ok := fresh[key]; !ok || !sameClusters(is[key], other) {
			errs = append(errs, fmt.Errorf("%s is on %v, but a fresh server places it on %v", key, is[key], other))
		}
	}
	if len(is) != len(fresh) {
		errs = append(errs, fmt.Errorf("%d decisions, but a fresh server makes %d", len(is), len(fresh)))
	}
	return errors.Join(errs...)
}

// judge waits until the world has recovered, and then runs all oracles. The writers must have stopped.
func (w *world) judge() {
	w.t.Helper()
	there := w.judgeQuickly()
	w.compare(there)
}

// judgeQuickly leaves out oracles (e) and (f), which need another server. It is for the rounds of a test that ends with
// judge.
func (w *world) judgeQuickly() map[api.Key]api.Object {
	w.t.Helper()
	p := w.p()
	eventually.True(w.t, "the server is ready", func() bool {
		if !p.alive() {
			w.t.Fatalf("the server has exited:\n%s", p.stderr.Tail())
		}
		return p.readiness().status == 200
	})
	var there map[api.Key]api.Object
	var err error
	eventually.True(w.t, "everything is decided", func() bool {
		there, err = objects(p)
		return err == nil && settled(there)
	})
	report := func(letter, what string, err error) {
		w.t.Helper()
		if err != nil {
			w.t.Errorf("oracle (%s), %s: %.4000v", letter, what, err)
		}
	}
	report("a", "every acknowledged write is there", oracleAcknowledged(w.ledger, there))
	w.ledger.settle(there)

	stream := w.seen.stream()
	for _, object := range there {
		w.seen.add(stream, object)
	}
	sightings := w.seen.all()
	looked, err := oracleConstraints(sightings)
	if looked == 0 {
		w.t.Error("oracle (b) has not seen any decision")
	}
	report("b", "no decision violates its constraints", err)
	report("c", "nothing goes back", oracleOrder(sightings))

	info, err := p.client.Server(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	w.seen.storeRevision(w.t, info)
	var leaders []string
	eventually.True(w.t, "a server leads", func() bool { // the leader may just have changed
		for _, other := range w.seen.running() {
			if info, err := other.client.Server(context.Background()); err == nil && info.Leader {
				leaders = append(leaders, other.url)
			}
		}
		return len(leaders) > 0
	})
	report("d", "one server decides", oracleFence(leaders, w.seen.derived()))
	w.t.Logf("judged: %d acknowledged writes, %d decisions seen", w.ledger.count(), looked)
	return there
}

// compare compares the server with a fresh one.
func (w *world) compare(there map[api.Key]api.Object) {
	w.t.Helper()
	p := w.p()
	fresh := w.fresh(there)
	defer fresh.kill()
	eventuallyNil(w.t, "oracle (f), the same decisions as a fresh server", func() error {
		there, err := objects(p)
		if err != nil {
			return err
		}
		others, err := objects(fresh)
		if err != nil {
			return err
		}
		return oracleConvergence(decisions(there), decisions(others))
	})
	eventuallyNil(w.t, "oracle (e), nothing has leaked", func() error {
		now, err := p.figures()
		if err != nil {
			return err
		}
		reference, err := fresh.figures()
		if err != nil {
			return err
		}
		if w.first != nil {
			reference = *w.first
		}
		return oracleLeaks(now, reference)
	})
}

// settled reports whether every decision answers the present spec.
func settled(there map[api.Key]api.Object) bool {
	for _, object := range there {
		switch o := object.(type) {
		case *api.Placement:
			if o.Status.ObservedGeneration != o.Metadata.Generation {
				return false
			}
		case *api.Workload:
			if o.Status.ObservedGeneration != o.Metadata.Generation {
				return false
			}
		}
	}
	return true
}

// fresh starts another server with the same objects.
func (w *world) fresh(there map[api.Key]api.Object) *process {
	w.t.Helper()
	args := w.freshArgs
	if args == nil {
		args = embedded(dataDir(w.t))
	}
	p := launch(w.t, nil, serverBinary, args...).awaitReady()
	order := []api.Kind{
		api.KindMetricsProvider, api.KindMetric, api.KindClusterSet, api.KindCloud, api.KindCluster, api.KindPlacementScore,
		api.KindPropagationPolicy, api.KindWorkload, api.KindPlacement,
	}
	for _, kind := range order {
		var group errgroup.Group
		group.SetLimit(8)
		for key, object := range there {
			if key.Kind != kind {
				continue
			}
			group.Go(func() error {
				bare := object.Copy()
				*bare.Meta() = api.Metadata{Name: key.Name, Namespace: object.Meta().Namespace, Cluster: object.Meta().Cluster, Labels: object.Meta().Labels}
				_, err := p.client.Put(context.Background(), bare, client.PutOptions{Wait: pointer(time.Duration(0))})
				if err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			w.t.Fatalf("give a fresh server the same objects: %v", err)
		}
	}
	return p
}

// eventuallyNil waits until check returns no error.
func eventuallyNil(t testing.TB, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Since(began) > eventually.Limit {
			t.Errorf("%s: %.4000v", what, err)
			return
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the interval between two checks
	}
}

// history passes the observed decisions of all servers of a world to oracles (b) and (c), in the order of observation,
// and records its servers.
type history struct {
	mu        sync.Mutex
	sightings []sighting
	servers   []*process
	streams   int
	fenced    []derivation
	revision  int64 // the highest revision that a server said its store has
}

func newHistory() *history { return &history{} }

// watch follows a server until the server or ctx ends.
func (h *history) watch(ctx context.Context, p *process) {
	h.mu.Lock()
	h.servers = append(h.servers, p)
	h.mu.Unlock()
	// A restarted watch has a gap; what exists then is observed once.
	for ctx.Err() == nil {
		stream := h.stream()
		for event, err := range p.client.Watch(ctx, "", api.KindPlacement, api.KindWorkload) {
			if err != nil {
				break
			}
			if event.Type == api.EventPut {
				h.add(stream, event.Object)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stream numbers a new stream.
func (h *history) stream() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams++
	return h.streams
}

func (h *history) add(stream int, object api.Object) {
	if s, ok := sight(object); ok {
		s.stream = stream
		h.mu.Lock()
		defer h.mu.Unlock()
		h.sightings = append(h.sightings, s)
	}
}

func (h *history) all() []sighting {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sightings)
}

func (h *history) derived() []derivation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.fenced)
}

// running returns the servers that have not ended.
func (h *history) running() []*process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.servers), func(p *process) bool { return !p.alive() })
}

// storeRevision checks a part of oracle (c): the store never goes back either.
func (h *history) storeRevision(t testing.TB, info *api.ServerInfo) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if info.Store.Revision < h.revision {
		t.Errorf("oracle (c): the store went back from revision %d to %d", h.revision, info.Store.Revision)
	}
	h.revision = max(h.revision, info.Store.Revision)
}

// forget starts over after the store was replaced by an older one.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sightings, h.revision = nil, 0
}
