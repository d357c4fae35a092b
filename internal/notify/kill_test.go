package notify

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// How much TestDeliveredWhateverHappens does.
var (
	moves = flag.Int("moves", 2000, "how often decisions move")
	kills = flag.Int("kills", 3, "how often the leader is killed while it delivers")
	turns = flag.Int("leaders", 2, "how often the leader gives way without being killed, for each life of a process")
)

// Tests that kill a process run the test binary again with this variable, the address of an etcd.
const childVariable = "SCHEDULER_NOTIFY_TEST_CHILD"

const childObjects = 100

// maxChildMemory is more than a server needs to deliver, and less than the history of the large test.
const maxChildMemory = 200 << 20

// childMain leads whenever it can, moves placements and delivers notifications. It reports whether it is a child.
func childMain() bool {
	address := os.Getenv(childVariable)
	if address == "" {
		return false
	}
	if err := childRun(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// childServer is what a child has of a server.
type childServer struct {
	store   *store.Store
	codec   *store.Codec
	fleet   *fleet.Fleet
	history *history.Log
	batcher *store.Batcher
}

func openChild(ctx context.Context, address string, lease time.Duration) (*childServer, error) {
	s := &childServer{}
	var err error
	if s.store, err = store.Open(ctx, store.Options{Endpoints: []string{"http://" + address}, HistoryBytes: 1 << 30, LeaseTTL: lease}); err != nil {
		return nil, err
	}
	if s.codec, err = store.NewCodec(testKey); err != nil {
		return nil, err
	}
	s.fleet = fleet.New(fleet.Options{Store: s.store, Codec: s.codec})
	s.history = history.New(history.Options{Store: s.store, Retention: 24 * time.Hour, Size: 1 << 30})
	s.batcher = store.NewBatcher(s.store)
	return s, nil
}

func childRun(address string) error {
	ctx := context.Background()
	s, err := openChild(ctx, address, time.Second)
	if err != nil {
		return err
	}
	for _, run := range []func(context.Context) error{s.fleet.Run, s.history.Run, s.batcher.Run} {
		go func() { _ = run(ctx) }()
	}
	<-s.fleet.Ready()
	for term := 0; ; term++ {
		t, err := s.store.Campaign(ctx)
		if err != nil {
			return err
		}
		fmt.Println("leads")
		s.term(t.Context(), t.Began, term < *turns)
		t.Resign()
	}
}

// term moves placements and delivers notifications until the term ends, or, if it is short, for some moves.
func (s *childServer) term(ctx context.Context, began int64, short bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := s.fleet.WaitRevision(ctx, began); err != nil {
		return
	}
	runner := New(Options{
		Fleet: s.fleet, History: s.history, Batcher: s.batcher, Codec: s.codec, Network: netpolicy.OnLoopback(),
		Again: backoff.Backoff{First: time.Millisecond, Most: 10 * time.Millisecond},
	})
	var delivering sync.WaitGroup
	delivering.Go(func() { _ = runner.Run(ctx) })
	defer delivering.Wait()
	defer cancel()
	for n := 0; ctx.Err() == nil && (!short || n < 40); n++ {
		more, err := s.move(ctx)
		var memory runtime.MemStats
		if runtime.ReadMemStats(&memory); memory.HeapAlloc > maxChildMemory {
			fmt.Fprintf(os.Stderr, "%d bytes in use\n", memory.HeapAlloc)
			os.Exit(1)
		}
		if err == nil && !more {
			fmt.Println("complete")
			<-ctx.Done()
			return
		}
		fmt.Println("moved")
	}
}

// move moves some placements on from cluster n to n+1, and reports whether there are more moves to make.
func (s *childServer) move(ctx context.Context) (more bool, err error) {
	each := int64(*moves / childObjects)
	var writes []store.StatusWrite
	for _, n := range rand.Perm(childObjects)[:childObjects/2] {
		key := childObject(n)
		spec, status, err := s.store.Read(ctx, key)
		if err != nil {
			return true, err
		}
		before := &api.Placement{Kind: api.KindPlacement, Metadata: api.Metadata{Name: key.Name, Namespace: key.Namespace, UID: "uid-" + key.Name}}
		if status != nil {
			if err := s.codec.DecodeStatus(before, status.Value); err != nil {
				return true, err
			}
		}
		if before.Status.DecisionRevision == each {
			continue
		}
		after := *before
		after.Status.DecisionRevision++
		after.Status.Clusters = []string{fmt.Sprintf("c%d", after.Status.DecisionRevision)}
		value, err := s.codec.EncodeStatus(&after)
		if err != nil {
			return true, err
		}
		record, _, err := history.Encode(before, &after, history.Move{Time: time.Now(), Cause: &api.Cause{Type: api.CauseMetric}}, value)
		if err != nil {
			return true, err
		}
		writes = append(writes, store.StatusWrite{Key: key, Value: value, SpecRevision: spec.ModRevision, History: record})
	}
	if len(writes) == 0 {
		return s.left(ctx, each)
	}
	_, err = s.store.Derive(ctx, writes)
	return true, err
}

// left reports whether a placement has moves to make.
func (s *childServer) left(ctx context.Context, each int64) (bool, error) {
	for n := range childObjects {
		p := &api.Placement{}
		_, status, err := s.store.Read(ctx, childObject(n))
		if err != nil {
			return true, err
		}
		if status == nil {
			return true, nil
		}
		if err := s.codec.DecodeStatus(p, status.Value); err != nil || p.Status.DecisionRevision < each {
			return true, err
		}
	}
	return false, nil
}

func childObject(n int) api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: fmt.Sprintf("p-%d", n)}
}

// child is a process that delivers.
type child struct {
	*exec.Cmd

	lines chan string
}

func startChild(t *testing.T, address string) *child {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{exec.CommandContext(t.Context(), executable, fmt.Sprintf("-moves=%d", *moves), fmt.Sprintf("-leaders=%d", *turns)), make(chan string, 1000)}
	c.Env = append(os.Environ(), childVariable+"="+address)
	c.Stderr = os.Stderr
	output, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
	}()
	return c
}

func (c *child) stop(t *testing.T) {
	t.Helper()
	_ = c.Process.Kill() // Wait says whether it was
	for range c.lines {
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the child was not killed: %v", err)
	}
}

// ledger is a receiver that fails half the time, and keeps only the last move of each placement and what is wrong.
type ledger struct {
	mu      sync.Mutex
	last    map[string]int
	ids     map[string]string // which move an ID was given to
	doubled int
	wrong   []string
}

// take answers a request.
func (l *ledger) take(t testing.TB, w http.ResponseWriter, r request) {
	var e cloudEvent
	r.decode(t, &e)
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(e.Data.After.Clusters[0], "c%d", &n); err != nil {
		l.wrong = append(l.wrong, err.Error())
	}
	move := fmt.Sprintf("%s %d", e.Subject, n)
	if known, ok := l.ids[e.ID]; ok && known != move {
		l.wrong = append(l.wrong, fmt.Sprintf("%s and %s have the same ID", known, move))
	}
	if rand.IntN(2) == 0 { // it may have been received, or not
		if rand.IntN(2) == 0 {
			l.receive(e, move, n)
		}
		w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusUnprocessableEntity}[rand.IntN(8)/7])
		return
	}
	l.receive(e, move, n)
	w.WriteHeader(http.StatusNoContent)
}

func (l *ledger) receive(e cloudEvent, move string, n int) {
	if _, again := l.ids[e.ID]; again {
		l.doubled++
		return
	}
	l.ids[e.ID] = move
	if l.last[e.Subject] != n-1 {
		l.wrong = append(l.wrong, fmt.Sprintf("%s moves to %d after %d", e.Subject, n, l.last[e.Subject]))
	}
	l.last[e.Subject] = n
}

// TestDeliveredWhateverHappens kills the leader of two servers while it delivers to a receiver that fails or refuses half the time, again and
// again, and has it give way in between. Each move must arrive at least once, in order for each object, with an ID of its own,
// although another destination never answers.
func TestDeliveredWhateverHappens(t *testing.T) {
	address, _ := storetest.Etcd(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*eventually.Limit)
	t.Cleanup(cancel)
	l := &ledger{last: map[string]int{}, ids: map[string]string{}}
	to := newReceiver(t, nil)
	to.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if body, err := io.ReadAll(q.Body); err == nil {
			l.take(t, w, request{q, body})
		}
	})
	release := make(chan struct{})
	dead := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	prepareMoves(ctx, t, address, to.URL, dead.URL)
	first, second := startChild(t, address), startChild(t, address)
	leaders, killed := 0, 0
	next := func() string {
		for {
			var line string
			var ok bool
			select {
			case line, ok = <-first.lines:
			case line, ok = <-second.lines:
				first, second = second, first
			case <-ctx.Done():
				t.Fatalf("it takes too long: %d terms, %d kills", leaders, killed)
			}
			if !ok {
				t.Fatal("a child has ended")
			}
			if line != "leads" {
				return line
			}
			leaders++
		}
	}
	for ; killed < *kills; killed++ {
		for range 1 + rand.IntN(2**moves/childObjects/(*kills+1)+1) {
			if next() == "complete" {
				break
			}
		}
		first.stop(t)
		first = startChild(t, address)
	}
	for next() != "complete" {
	}
	each := *moves / childObjects
	eventually.Within(t, 4*eventually.Limit, "all moves arrive", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.last) == childObjects && !slices.ContainsFunc(slices.Collect(maps.Values(l.last)), func(n int) bool { return n < each }) || len(l.wrong) > 0
	})
	first.stop(t)
	second.stop(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) > 0 {
		t.Errorf("%d mistakes: %s", len(l.wrong), strings.Join(l.wrong[:min(len(l.wrong), 5)], "; "))
	}
	if len(l.ids) != each*childObjects {
		t.Errorf("%d IDs for %d moves", len(l.ids), each*childObjects)
	}
	t.Logf("%d moves, %d terms, %d kills, %d repetitions", len(l.ids), leaders, killed, l.doubled)
}

// prepareMoves writes the placements that move, and who is told.
func prepareMoves(ctx context.Context, t *testing.T, address, to, dead string) {
	t.Helper()
	s, err := openChild(ctx, address, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.store.Close() }()
	put := func(object api.Object) {
		m := object.Meta()
		m.UID, m.Generation = "uid-"+m.Name, 1
		object.SetDefaults()
		value, err := s.codec.EncodeSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.Commit(ctx, store.Write{Key: api.KeyOf(object), Part: store.Spec, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	for name, url := range map[string]string{"flaky": to, "dead": dead} {
		put(&api.Notification{Metadata: api.Metadata{Name: name}, Spec: api.NotificationSpec{
			Events: []api.NotificationEvent{api.EventMoved}, Webhook: &api.WebhookDestination{URL: url},
		}})
	}
	for n := range childObjects {
		key := childObject(n)
		put(&api.Placement{Metadata: api.Metadata{Name: key.Name, Namespace: key.Namespace}})
	}
}
