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
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
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

// generationOf identifies a generation of an object.
type generationOf struct {
	uid        string
	generation int64
}

// allowed is what a spec allows.
type allowed struct {
	group string
	most  int64 // clusters
}

// constraintOracle (b) checks that no decision violates the constraints of the spec that it answers. It judges every
// sighting once, and keeps the specs for later decisions.
type constraintOracle struct {
	specs map[generationOf]allowed
	// waiting are decisions whose spec has not been seen yet.
	waiting map[generationOf][]sighting
	looked  int // number of decisions judged
}

func newConstraintOracle() *constraintOracle {
	return &constraintOracle{specs: map[generationOf]allowed{}, waiting: map[generationOf][]sighting{}}
}

func (o *constraintOracle) see(s sighting) error {
	var errs []error
	shown := generationOf{s.uid, s.generation}
	if _, known := o.specs[shown]; !known {
		o.specs[shown] = allowed{s.group, s.most}
		for _, before := range o.waiting[shown] {
			errs = append(errs, o.judge(before))
		}
		delete(o.waiting, shown)
	}
	answered := generationOf{s.uid, s.observed}
	if _, known := o.specs[answered]; known {
		errs = append(errs, o.judge(s))
	} else if s.observed > 0 {
		o.waiting[answered] = append(o.waiting[answered], s)
	}
	return errors.Join(errs...)
}

// judge checks a decision whose spec has been seen.
func (o *constraintOracle) judge(s sighting) error {
	o.looked++
	spec := o.specs[generationOf{s.uid, s.observed}]
	var errs []error
	if int64(len(s.clusters)) > spec.most {
		errs = append(errs, fmt.Errorf("%s in version %d: %v are more than %d clusters", s.key, s.version, s.clusters, spec.most))
	}
	for _, cluster := range s.clusters {
		name, _, _ := strings.Cut(cluster, "=")
		if groupOf(name) != spec.group {
			errs = append(errs, fmt.Errorf("%s in version %d: generation %d requests group %s, but %s is in %s", s.key, s.version, s.observed, spec.group, name, groupOf(name)))
		}
	}
	return errors.Join(errs...)
}

// orderOracle (c) checks that no stream shows an older object after a newer one, that counters never decrease in the
// order of versions, over all servers, and that every change of a decision is counted. It compares every sighting once,
// with its neighbors in the order of versions, and keeps one sighting of each version.
type orderOracle struct {
	// shown holds the version that each stream showed last, by stream and UID.
	shown map[int]map[string]int64
	// versions holds the states of each object, by UID, in the order of versions.
	versions map[string][]sighting
}

func newOrderOracle() *orderOracle {
	return &orderOracle{shown: map[int]map[string]int64{}, versions: map[string][]sighting{}}
}

func (o *orderOracle) see(s sighting) error {
	var errs []error
	shown := o.shown[s.stream]
	if shown == nil {
		shown = map[string]int64{}
		o.shown[s.stream] = shown
	}
	if before := shown[s.uid]; s.version < before {
		errs = append(errs, fmt.Errorf("a stream returned %+v after version %d", s, before))
	}
	shown[s.uid] = s.version

	s.stream = 0 // a version is the same on every stream
	list := o.versions[s.uid]
	at, found := slices.BinarySearchFunc(list, s.version, func(other sighting, version int64) int { return cmp.Compare(other.version, version) })
	if found {
		if !reflect.DeepEqual(s, list[at]) {
			errs = append(errs, fmt.Errorf("%s has two states in one version: %+v and %+v", s.key, list[at], s))
		}
		return errors.Join(errs...)
	}
	if at > 0 {
		errs = append(errs, follows(list[at-1], s))
	}
	if at < len(list) {
		errs = append(errs, follows(s, list[at]))
	}
	o.versions[s.uid] = slices.Insert(list, at, s)
	return errors.Join(errs...)
}

// ended forgets a stream that has ended.
func (o *orderOracle) ended(stream int) { delete(o.shown, stream) }

// follows checks a state of an object against the state before it.
func follows(before, s sighting) error {
	switch {
	case s.generation < before.generation, s.observed < before.observed, s.decision < before.decision:
		return fmt.Errorf("%s went back from %+v to %+v", s.key, before, s)
	case s.decision == before.decision && before.observed > 0 && !sameClusters(s.clusters, before.clusters):
		return fmt.Errorf("%s moved from %v to %v and does not count it", s.key, before.clusters, s.clusters)
	}
	return nil
}

// sameClusters compares two decisions, ignoring the order.
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
	w.seen.ended(stream)
	looked, constraints, order := w.seen.verdict()
	if looked == 0 {
		w.t.Error("oracle (b) has not seen any decision")
	}
	report("b", "no decision violates its constraints", constraints)
	report("c", "nothing goes back", order)

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
	mu          sync.Mutex
	constraints *constraintOracle
	order       *orderOracle
	// The violations found since the last verdict.
	violated, disordered []error

	servers  []*process
	streams  int
	fenced   []derivation
	revision int64 // the highest store revision that a server has reported
}

func newHistory() *history {
	return &history{constraints: newConstraintOracle(), order: newOrderOracle()}
}

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
		h.ended(stream)
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
	s, ok := sight(object)
	if !ok {
		return
	}
	s.stream = stream
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.constraints.see(s); err != nil {
		h.violated = append(h.violated, err)
	}
	if err := h.order.see(s); err != nil {
		h.disordered = append(h.disordered, err)
	}
}

// ended forgets a stream that has ended.
func (h *history) ended(stream int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.order.ended(stream)
}

// verdict returns what oracles (b) and (c) have found since the last verdict, and how many decisions (b) has judged.
func (h *history) verdict() (looked int, constraints, order error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	constraints, order = errors.Join(h.violated...), errors.Join(h.disordered...)
	h.violated, h.disordered = nil, nil
	return h.constraints.looked, constraints, order
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
	h.constraints, h.order, h.revision = newConstraintOracle(), newOrderOracle(), 0
	h.violated, h.disordered = nil, nil
}
