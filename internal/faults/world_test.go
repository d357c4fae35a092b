//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// The fleet: clusters in groups, each with a metric from a static provider. The writers write placements, which choose
// from a group; workloads, which a policy divides over one; and the values of the metrics.
const (
	groups           = 3
	clustersPerGroup = 4
	writers          = 6
	perWriter        = 4 // objects that each writer writes in turn
	namespace        = "shop"
	groupLabel       = "group"
	writtenLabel     = "written"
	providerName     = "rates"
)

func pointer[T any](v T) *T { return &v }

func groupName(n int) string { return "g" + strconv.Itoa(n) }

func clusterName(n int) string { return fmt.Sprintf("c%d", n) }

// groupOf returns the group of a cluster, which never changes.
func groupOf(cluster string) string {
	switch {
	case cluster[0] == 's':
		return groupName(groups) // the fleet of the storm
	case strings.HasPrefix(cluster, terraformGroup):
		return terraformGroup
	}
	n, err := strconv.Atoi(cluster[1:])
	if err != nil {
		return ""
	}
	return groupName(n / clustersPerGroup)
}

// world is a server with its writers, and everything that is known about its responses. This is kept outside the
// server's process.
type world struct {
	t      testing.TB
	fault  *fault
	binary string
	args   []string // arguments of every server in this world
	server atomic.Pointer[process]
	// clients returns the clients of the writers; nil = the server's client.
	clients func(writer int) *client.Client

	ledger *ledger
	seen   *history
	random *rand.Rand // only for the test itself
	number atomic.Int64

	writing sync.WaitGroup
	halt    chan struct{}
	// first is the memory of this world's server before any fault, if it cannot be compared with that of a fresh one;
	// nil = it can.
	first *figures
	// freshArgs are additional arguments of the server that the world is compared with; nil = only its own data
	// directory.
	freshArgs []string
}

// newWorld starts a server with a fleet. args are the server's arguments, including its store.
func newWorld(t testing.TB, f *fault, args ...string) *world {
	t.Helper()
	w := &world{t: t, fault: f, binary: serverBinary, args: args, ledger: newLedger(), seen: newHistory(), random: seeded.Rand(t)}
	w.start()
	w.fill()
	t.Cleanup(w.stopWriting)
	return w
}

// embedded returns the arguments of a server with a store in a directory.
func embedded(dir string, args ...string) []string {
	return append([]string{"--data-dir", dir}, args...)
}

// undisturbed is embedded for tests whose fault is not one of the store: it may then be as slow as a
// busy machine makes it.
func undisturbed(dir string, args ...string) []string {
	return embedded(dir, append([]string{"--store-timeout", eventually.Limit.String(), "--store-patience", eventually.Limit.String()}, args...)...)
}

func dataDir(t testing.TB) string { return filepath.Join(t.TempDir(), "data") }

func (w *world) p() *process { return w.server.Load() }

// client returns the client of a writer.
func (w *world) client(writer int) *client.Client {
	if w.clients != nil {
		return w.clients(writer)
	}
	return w.p().client
}

// start starts the server of the world and waits until it is ready.
func (w *world) start() *process {
	w.t.Helper()
	p := launch(w.t, nil, w.binary, w.args...)
	p.awaitReady()
	w.follow(p)
	return p
}

// follow makes a server the one of the world, and records what it shows.
func (w *world) follow(p *process) {
	w.server.Store(p)
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		defer stop()
		w.seen.watch(ctx, p)
	})
	go func() {
		<-p.exited
		stop()
	}()
	w.t.Cleanup(func() {
		stop()
		watching.Wait()
	})
}

// restart kills the server, if it still runs, and starts it again.
func (w *world) restart() *process {
	w.t.Helper()
	w.p().kill()
	return w.start()
}

// fill creates the fleet and makes the first decisions.
func (w *world) fill() {
	w.t.Helper()
	for _, object := range fleetObjects() {
		w.mustPut(object)
	}
	for writer := range writers {
		for n := range perWriter {
			// Other failures are counted below.
			eventually.True(w.t, "a first write is answered", func() bool {
				err := w.write(w.random, w.client(writer), writer, n, time.Now().Add(eventually.Limit))
				return client.StatusOf(err) != http.StatusServiceUnavailable
			})
		}
	}
	if missing := writers*perWriter - len(w.ledger.acknowledged()); missing > 0 {
		w.t.Fatalf("%d of the initial writes failed", missing)
	}
}

// fleetObjects returns the objects that the writers do not change.
func fleetObjects() []api.Object {
	objects := []api.Object{ratesProvider(rand.New(rand.NewPCG(1, 1)), 0)}
	for n := range groups * clustersPerGroup {
		objects = append(objects,
			&api.Metric{
				Metadata: api.Metadata{Name: "m-" + clusterName(n)},
				Spec: api.MetricSpec{
					Min: pointer(0.0), Max: pointer(100.0),
					MetricsProvider: api.MetricProviderRef{Name: providerName, Metric: clusterName(n)},
				},
			},
			&api.Cluster{
				Metadata: api.Metadata{Name: clusterName(n), Labels: map[string]string{groupLabel: groupOf(clusterName(n))}},
				Spec:     api.ClusterSpec{Metrics: []api.MetricRef{{Name: "m-" + clusterName(n), Weight: pointer(1.0)}}},
			})
	}
	// The weights are powers of two, so that dividing replicas never causes a tie, which would be broken by the
	// history.
	var weights []api.StaticWeight
	for n := range clustersPerGroup {
		weights = append(weights, api.StaticWeight{Affinity: api.ClusterAffinity{ClusterNames: []string{clusterName(n)}}, Weight: 1 << n})
	}
	return append(objects, &api.PropagationPolicy{
		Metadata: api.Metadata{Name: "all", Namespace: namespace},
		Spec: api.PropagationPolicySpec{
			ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement: api.PropagationPlacement{
				ClusterAffinity: &api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{groupLabel: groupName(0)}}},
				ReplicaScheduling: &api.ReplicaScheduling{
					Type: api.Divided, DivisionPreference: api.Weighted,
					WeightPreference: &api.WeightPreference{StaticWeights: weights},
				},
			},
		},
	})
}

// ratesProvider gives every cluster another value, so that there are no ties, which would be broken by the UID of the
// placement.
func ratesProvider(random *rand.Rand, number int64) *api.MetricsProvider {
	values := map[string]float64{}
	for i, n := range random.Perm(groups * clustersPerGroup) {
		values[clusterName(i)] = float64(5 + 7*n)
	}
	return &api.MetricsProvider{
		Metadata: api.Metadata{Name: providerName, Labels: written(number)},
		Spec:     api.MetricsProviderSpec{Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: values}},
	}
}

func written(number int64) map[string]string {
	return map[string]string{writtenLabel: strconv.FormatInt(number, 10)}
}

// placement returns a placement that chooses the best clusters of a group, and follows changes at once.
func placement(name, group string, clusters, number int64) *api.Placement {
	return &api.Placement{
		Metadata: api.Metadata{Namespace: namespace, Name: name, Labels: written(number)},
		Spec: api.PlacementSpec{
			NumberOfClusters: pointer(clusters), LabelConstraints: []string{groupLabel + " is " + group}, RescheduleAfter: "0s",
			Metrics: &api.MetricsStrategy{Stickiness: pointer(0.0)},
		},
	}
}

func workload(name string, replicas, number int64) *api.Workload {
	return &api.Workload{
		Metadata: api.Metadata{Namespace: namespace, Name: name, Labels: written(number)},
		Spec:     api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: pointer(replicas)},
	}
}

func (w *world) mustPut(object api.Object) api.Object {
	w.t.Helper()
	var stored api.Object
	var err error
	eventually.True(w.t, "a write is answered", func() bool {
		stored, err = put(w.p(), object)
		return client.StatusOf(err) != http.StatusServiceUnavailable // which a busy machine may cause
	})
	if err != nil {
		w.t.Fatalf("put %s: %v", api.KeyOf(object), err)
	}
	return stored
}

func put(p *process, object api.Object) (api.Object, error) {
	object.SetDefaults()
	return p.client.Put(context.Background(), object, client.PutOptions{})
}

// write writes an object: writer 0 writes the values of the metrics, writer 1 workloads, the others placements.
func (w *world) write(random *rand.Rand, c *client.Client, writer, n int, until time.Time) error {
	number := w.number.Add(1)
	var object api.Object
	switch writer {
	case 0:
		object = ratesProvider(random, number)
	case 1:
		object = workload(fmt.Sprintf("web-%d", n), 1+random.Int64N(40), number)
	default:
		object = placement(fmt.Sprintf("p%d-%d", writer, n), groupName(random.IntN(groups)), 1+random.Int64N(2), number)
	}
	if writer == 0 && n > 0 {
		object = placement(fmt.Sprintf("p%d-%d", writer, n), groupName(random.IntN(groups)), 1+random.Int64N(2), number)
	}
	key := api.KeyOf(object)
	object.SetDefaults()
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	if writer > 1 && w.ledger.exists(key) && random.IntN(8) == 0 {
		w.ledger.sent(key, state{number: number, gone: true})
		err := c.Delete(ctx, key)
		if client.IsNotFound(err) {
			err = nil // an earlier delete, whose response was lost
		}
		w.ledger.answered(key, state{number: number, gone: true}, nil, err)
		return err
	}
	w.ledger.sent(key, state{number: number})
	stored, err := c.Put(ctx, object, client.PutOptions{})
	w.ledger.answered(key, state{number: number}, stored, err)
	return err
}

// startWriting starts all writers, which run until stopWriting, whatever happens to the server.
func (w *world) startWriting() {
	w.halt = make(chan struct{})
	for writer := range writers {
		own := rand.New(rand.NewPCG(w.random.Uint64(), uint64(writer)))
		halt := w.halt
		w.writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-halt:
					return
				default:
				}
				if err := w.write(own, w.client(writer), writer, n%perWriter, time.Now().Add(5*time.Second)); err != nil {
					select {
					case <-halt:
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
		})
	}
}

func (w *world) stopWriting() {
	if w.halt != nil {
		close(w.halt)
		w.writing.Wait()
		w.halt = nil
	}
}

// awaitWrites waits until n more writes have been acknowledged.
func (w *world) awaitWrites(n int64) {
	w.t.Helper()
	want := w.ledger.count() + n
	eventually.True(w.t, fmt.Sprintf("%d further writes are acknowledged", n), func() bool { return w.ledger.count() >= want })
}

// state is the result of a write to an object.
type state struct {
	number int64
	gone   bool
}

// entry is what is known about one object.
type entry struct {
	last     state // the last acknowledged state; number 0 = none
	object   api.Object
	deleted  int64   // number of the last delete that was sent
	doubtful []state // sent later and unanswered: each may or may not have been done
}

// ledger records all writes. Each object has one writer, so its writes are ordered.
type ledger struct {
	mu      sync.Mutex
	entries map[api.Key]*entry
	acks    int64
}

func newLedger() *ledger { return &ledger{entries: map[api.Key]*entry{}} }

func (l *ledger) entry(key api.Key) *entry {
	e := l.entries[key]
	if e == nil {
		e = &entry{}
		l.entries[key] = e
	}
	return e
}

func (l *ledger) sent(key api.Key, s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(key)
	e.doubtful = append(e.doubtful, s)
	if s.gone {
		e.deleted = s.number
	}
}

// answered records the response to a write. A response that says that nothing was written also resolves it.
func (l *ledger) answered(key api.Key, s state, stored api.Object, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(key)
	switch {
	case err == nil:
		e.last, e.object, e.doubtful = s, stored, nil
		l.acks++
	case refused(err):
		e.doubtful = slices.DeleteFunc(e.doubtful, func(d state) bool { return d == s })
	}
}

// refused reports whether an error guarantees that nothing was written.
func refused(err error) bool {
	status := client.StatusOf(err)
	var unreachable *client.UnreachableError
	return !errors.As(err, &unreachable) && (status >= 400 && status < 500 || status == 507)
}

func (l *ledger) exists(key api.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	return e != nil && e.last.number > 0 && !e.last.gone
}

func (l *ledger) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// acknowledged returns the objects whose existence was acknowledged last.
func (l *ledger) acknowledged() map[api.Key]state {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[api.Key]state{}
	for key, e := range l.entries {
		if e.last.number > 0 && !e.last.gone {
			out[key] = e.last
		}
	}
	return out
}

// adopt takes the objects of a server as they are, because its store was replaced.
func (l *ledger) adopt(objects map[api.Key]api.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = map[api.Key]*entry{}
	for key, object := range objects {
		if number := numberOf(object); number > 0 {
			l.entries[key] = &entry{last: state{number: number}, object: object}
		}
	}
}

func numberOf(object api.Object) int64 {
	number, err := strconv.ParseInt(object.Meta().Labels[writtenLabel], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// objects returns all objects of a server, which has no list of a kind that it does not know.
func objects(p *process) (map[api.Key]api.Object, error) {
	out := map[api.Key]api.Object{}
	for _, info := range api.Kinds {
		for object, err := range p.client.List(context.Background(), info.Kind, client.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			out[api.KeyOf(object)] = object
		}
	}
	return out, nil
}

// copyDir copies a directory as it is at this moment.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}
