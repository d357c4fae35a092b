//go:build faults

package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// lease is the lease of the servers in these tests.
const lease = 3 * time.Second

// replica is one of several servers on one store, at a fixed address.
type replica struct {
	*process
	name, address string
	// contender only sends requests to this server, without retries.
	contender *client.Client
	binary    string
	args      []string
	wrap      []string
	// links connect it to and from each member of etcd, or each other server.
	links []link
	// peer is its member if the stores form the cluster: name=https://host:port.
	peer string
}

// link is a proxy at a server.
type link struct {
	*proxy
	inward bool // others reach the server through it
}

// set sets what happens to the bytes that the server sends and receives.
func (l link) set(there, back weather) {
	if l.inward {
		there, back = back, there
	}
	l.proxy.set(there, back)
}

// ensemble is a world with three servers, on an etcd cluster of three or with their own stores as the cluster.
type ensemble struct {
	*world
	members  []*member // members of etcd
	replicas []*replica
	record   *record
}

// newEnsemble starts an ensemble. on gives the servers their store; wrap returns the command that runs the nth server.
func newEnsemble(t testing.TB, f *fault, binary string, on func(*ensemble), wrap func(n int) []string) *ensemble {
	t.Helper()
	e := &ensemble{
		world:  &world{t: t, fault: f, binary: binary, ledger: newLedger(), seen: newHistory(), random: seeded.Rand(t)},
		record: &record{},
	}
	var addresses []string
	for n := range 3 {
		r := &replica{name: fmt.Sprint("s", n), address: proxytest.FreeAddress(t), binary: binary, wrap: wrap(n)}
		r.contender = newClient(t, client.Options{Endpoint: "http://" + r.address, MaxRetries: -1, RequestTimeout: contenderTimeout})
		e.replicas, addresses = append(e.replicas, r), append(addresses, "http://"+r.address)
	}
	on(e)
	key := filepath.Join(t.TempDir(), "seal.key") // the same for all servers
	for _, r := range e.replicas {
		r.args = append(r.args, "--key-file", key, "--lease", lease.String(), "--name", r.name, "--listen", r.address, "--store-timeout", "2s")
		r.process = launch(t, r.wrap, r.binary, r.args...)
	}
	for _, r := range e.replicas {
		r.awaitReady()
		e.follow(r.process)
	}
	var clients []*client.Client
	for n := range writers {
		// Each prefers another server.
		clients = append(clients, newClient(t, client.Options{Endpoints: slices.Concat(addresses[n%3:], addresses[:n%3]), MaxRetries: 2, RequestTimeout: 10 * time.Second}))
	}
	e.clients = func(writer int) *client.Client { return clients[writer] }
	if e.members == nil {
		eventually.True(t, "the leader does not lead the cluster of stores as well", func() bool { return e.leader() != e.storeLeader() })
	}
	e.fill()
	if e.members == nil { // the connections to the others are not a leak
		first, err := e.leader().figures()
		if err != nil {
			t.Fatal(err)
		}
		e.first = &first
	}
	t.Cleanup(e.stopWriting)
	return e
}

// onEtcd uses an etcd cluster of three as the store.
func onEtcd(e *ensemble) {
	e.t.Helper()
	e.members = startEtcd(e.t, 3)
	for _, r := range e.replicas {
		var etcd []string
		for _, m := range e.members {
			x := startProxy(e.t, startTap(e.t, r.name, m.client, e.record).address)
			r.links, etcd = append(r.links, link{x, false}), append(etcd, x.address())
		}
		r.args = []string{"--etcd-endpoints", strings.Join(etcd, ",")}
	}
}

// unwrapped runs a server directly.
func unwrapped(int) []string { return nil }

func newClient(t testing.TB, options client.Options) *client.Client {
	t.Helper()
	c, err := client.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (e *ensemble) launch(r *replica) {
	e.t.Helper()
	r.process = launch(e.t, r.wrap, r.binary, r.args...).awaitReady()
	e.follow(r.process)
}

// leads reports whether a server says that it is the leader.
func (r *replica) leads() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	info, err := r.client.Server(ctx)
	return err == nil && info.Leader
}

// leader waits for a leader that is not among the given servers.
func (e *ensemble) leader(without ...*replica) *replica {
	e.t.Helper()
	var found *replica
	eventually.True(e.t, "another server leads", func() bool {
		for _, r := range e.replicas {
			if !slices.Contains(without, r) && r.leads() {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// recover waits until exactly one server says that it leads and shows everything up to now, and makes it the server of
// the world. A server that was stopped or disconnected needs a moment to notice that another one leads: until then it
// still says that it leads, and shows what it knew, with its age.
func (e *ensemble) recover() {
	e.t.Helper()
	now := time.Now()
	eventually.True(e.t, "one server leads, and shows everything up to now", func() bool {
		var leading []*replica
		for _, r := range e.replicas {
			info, err := r.client.Server(e.t.Context())
			if err != nil {
				return false
			}
			if info.Leader {
				leading = append(leading, r)
			}
		}
		if len(leading) != 1 || !leading[0].showsAt(now) {
			return false
		}
		e.server.Store(leading[0].process)
		return true
	})
}

// showsAt reports whether a server shows everything that was acknowledged before a point in time.
func (r *replica) showsAt(at time.Time) bool {
	asked := time.Now()
	answer, err := r.ask(http.MethodGet, api.KeyOf(placement("p2-0", groupName(0), 1, 0)).URLPath(), "")
	if err != nil {
		return false
	}
	age, err := ageOf(answer.header)
	return err == nil && asked.Add(-age).After(at)
}

// toMember does something to all links to a member of etcd: what lies between it and the
// servers goes on without it.
func (e *ensemble) toMember(m *member, do func(*proxy)) {
	n := slices.Index(e.members, m)
	for _, r := range e.replicas {
		do(r.links[n].proxy)
	}
}

// follower returns a server that is not the leader.
func (e *ensemble) follower() *replica {
	leader := e.leader()
	return e.replicas[(slices.Index(e.replicas, leader)+1)%len(e.replicas)]
}

// whileDeciding waits until a server sends derived state to etcd, and calls do before etcd receives it, which is in the
// middle of a pass.
func (e *ensemble) whileDeciding(r *replica, do func()) {
	e.t.Helper()
	var once sync.Once
	done := make(chan struct{})
	e.record.ask(func(server string) {
		if server == r.name {
			once.Do(func() {
				do()
				close(done)
			})
		}
	})
	defer e.record.ask(nil)
	select {
	case <-done:
	case <-time.After(eventually.Limit):
		e.t.Fatalf("%s has made no decision", r.name)
	}
}

// otherDecisions waits until servers other than one have decided something since a
// moment.
func (e *ensemble) otherDecisions(since int, without *replica) {
	e.t.Helper()
	eventually.True(e.t, "another server decides", func() bool {
		return slices.ContainsFunc(e.record.all()[since:], func(d decided) bool { return d.term > 0 && d.server != without.name })
	})
}

// ensembleFault is a fault of servers that run together.
type ensembleFault struct {
	name string
	// happens injects the fault during writes, and ends it.
	happens func(e *ensemble)
}

// linkWeather lists the ways in which a server loses the connection to etcd, or to the others.
var linkWeather = []struct{ there, back weather }{{stalled, stalled}, {stalled, fine}, {fine, stalled}}

func (r *replica) set(there, back weather) {
	for _, link := range r.links {
		link.set(there, back)
	}
}

// held returns the number of packets that the links of a server have delayed.
func (r *replica) held() (n int64) {
	for _, link := range r.links {
		held, _ := link.counts()
		n += held
	}
	return n
}

// serverFaults are the faults of servers on any store.
var serverFaults = []ensembleFault{
	{"leader killed in the middle of a pass", func(e *ensemble) {
		r := e.leader()
		since := len(e.record.all())
		e.whileDeciding(r, r.kill)
		began := time.Now()
		e.otherDecisions(since, r)
		e.t.Logf("%s after the leader was killed, another one made a decision", time.Since(began).Round(10*time.Millisecond))
		e.fault.happened()
		e.launch(r)
	}},
	{"leader stopped for longer than its lease, then continued", func(e *ensemble) {
		r := e.leader()
		since := len(e.record.all())
		e.whileDeciding(r, func() { r.signal(syscall.SIGSTOP) })
		e.otherDecisions(since, r)
		e.fault.happened()
		r.signal(syscall.SIGCONT)
		e.awaitWrites(20)
	}},
	{"leader partitioned", func(e *ensemble) {
		for _, w := range linkWeather {
			r := e.leader()
			since := len(e.record.all())
			held := r.held()
			e.whileDeciding(r, func() { r.set(w.there, w.back) })
			e.otherDecisions(since, r)
			eventually.True(e.t, "the proxy holds traffic", func() bool { return r.held() > held })
			e.fault.happened()
			r.set(fine, fine)
			e.awaitWrites(20)
		}
	}},
	{"follower partitioned", func(e *ensemble) {
		for _, w := range linkWeather {
			r := e.follower()
			held := r.held()
			r.set(w.there, w.back)
			eventually.True(e.t, "the partitioned server reports it", func() bool { return r.readiness().status == 503 })
			e.awaitWrites(20) // through the other servers
			eventually.True(e.t, "the proxy holds traffic", func() bool { return r.held() > held })
			e.fault.happened()
			r.set(fine, fine)
			eventually.True(e.t, "the server is ready again", func() bool { return r.readiness().status == 200 })
		}
	}},
}

// etcdFaults are the faults of an etcd cluster.
var etcdFaults = []ensembleFault{
	{"etcd lost its leader", func(e *ensemble) {
		m := etcdLeader(e.t, e.members)
		m.kill()
		e.toMember(m, func(link *proxy) { link.reset(true) })
		e.fault.happened()
		e.awaitWrites(20)
		if err := m.start(); err != nil {
			e.t.Fatal(err)
		}
		e.toMember(m, func(link *proxy) { link.reset(false) })
		m = etcdLeader(e.t, e.members)
		m.signal(syscall.SIGSTOP)
		e.toMember(m, func(link *proxy) { link.set(stalled, stalled) })
		e.fault.happened()
		e.awaitWrites(20)
		m.signal(syscall.SIGCONT)
		e.toMember(m, func(link *proxy) { link.set(fine, fine) })
		e.awaitWrites(20)
	}},
	{"compaction under a slow follower", func(e *ensemble) {
		r := e.follower()
		held := r.held()
		r.set(fine, stalled)
		eventually.True(e.t, "the proxy holds traffic", func() bool { return r.held() > held })
		since := versionShown(r)
		e.awaitWrites(50)
		direct := e.members[0].connect()
		revision := revisionOf(e.t, direct)
		if _, err := direct.Compact(e.t.Context(), revision); err != nil {
			e.t.Fatal(err)
		}
		if revision <= since {
			e.t.Fatal("the history that the server needs was not compacted")
		}
		e.fault.happened()
		r.set(fine, fine)
		eventually.True(e.t, "the slow server shows the changes made meanwhile", func() bool {
			return r.readiness().status == 200 && versionShown(r) >= revision
		})
	}},
}

// versionShown returns the revision that a server reports, or 0.
func versionShown(r *replica) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	info, err := r.client.Server(ctx)
	if err != nil {
		return 0
	}
	return info.Store.Revision
}

// TestFaultSeveralServers injects faults into three servers on an etcd cluster of three, during writes through all of
// them. No decision is lost, none is made by two servers, and all reads and writes form one history.
func TestFaultSeveralServers(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 31)
	newEnsemble(t, f, serverBinary, onEtcd, unwrapped).suffer(slices.Concat(serverFaults, etcdFaults))
}

// suffer injects each of the faults in every round, and runs the oracles at the end.
func (e *ensemble) suffer(faults []ensembleFault) {
	e.t.Helper()
	for round := range rounds(1, 20) {
		for _, fault := range faults {
			e.round(fmt.Sprintf("%s, round %d", fault.name, round), func() {
				e.awaitWrites(20)
				fault.happens(e)
			})
		}
	}
	e.recover()
	e.judge()
}

// round injects a fault during writes and contests, and then runs the quick oracles.
func (e *ensemble) round(name string, happens func()) {
	e.t.Helper()
	began := time.Now()
	e.clearContests()
	e.startWriting()
	contest := e.startContest(name)
	happens()
	e.stopWriting()
	contest.stop()
	e.recover()
	e.judgeQuickly()
	e.oracleTerms()
	contest.judge()
	e.t.Logf("%s: %s", name, time.Since(began).Round(100*time.Millisecond))
}

// oracleTerms checks a part of oracle (d): each term belongs to one server, and all writes of a term precede those of
// the next.
func (e *ensemble) oracleTerms() {
	e.t.Helper()
	list := e.record.all()
	if len(list) == 0 {
		e.t.Error("oracle (d) has seen no decision")
	}
	if err := termsInOrder(list); err != nil {
		e.t.Errorf("oracle (d), terms do not overlap: %v", err)
	}
}

func termsInOrder(list []decided) error {
	slices.SortStableFunc(list, func(a, b decided) int { return cmp.Compare(a.revision, b.revision) })
	leader := map[int64]string{}
	var last decided
	var errs []error
	for _, d := range list {
		if d.term < 0 {
			continue // what a preview promised, written with the spec by whoever was asked
		}
		if by, ok := leader[d.term]; ok && by != d.server {
			errs = append(errs, fmt.Errorf("%s and %s write in term %d", by, d.server, d.term))
		}
		leader[d.term] = d.server
		if d.term < last.term {
			errs = append(errs, fmt.Errorf("%s writes at revision %d in term %d, after %s at revision %d in term %d", d.server, d.revision, d.term, last.server, last.revision, last.term))
		}
		last = d
	}
	return errors.Join(errs...)
}

// etcdLeader waits for the member of an etcd cluster that leads it.
func etcdLeader(t testing.TB, members []*member) *member {
	t.Helper()
	var found *member
	eventually.True(t, "the etcd cluster has a leader", func() bool {
		for _, m := range members {
			if m.cmd.ProcessState != nil {
				continue
			}
			c := m.connect()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			status, err := c.Status(ctx, m.client)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// TestFaultClocksApart sets the clocks of three servers an hour apart. Neither the leadership nor the decisions depend
// on them.
func TestFaultClocksApart(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 32)
	binary, err := altered()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnsemble(t, f, binary, onEtcd, func(n int) []string {
		file := filepath.Join(t.TempDir(), fmt.Sprint("clock", n))
		if err := os.WriteFile(file, []byte([]string{"-3600", "0", "3600"}[n]), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"env", clockVariable + "=" + file}
	})
	for round := range rounds(1, 20) {
		e.round(fmt.Sprint("clocks, round ", round), func() {
			var shown []time.Time
			for _, r := range e.replicas {
				info, err := r.client.Server(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				shown = append(shown, info.Now)
			}
			if shown[1].Sub(shown[0]) < 59*time.Minute || shown[2].Sub(shown[1]) < 59*time.Minute {
				t.Fatalf("the clocks do not differ as intended: %v", shown)
			}
			f.happened()
			// The leadership moves to a server with another clock.
			r := e.leader()
			since := len(e.record.all())
			e.awaitWrites(20)
			r.stop()
			e.otherDecisions(since, r)
			e.launch(r)
			e.awaitWrites(20)
		})
	}
	e.recover()
	e.judge()
}

// earlier is the server with the format of the store that the program before this one
// writes. It is built once.
var earlier = sync.OnceValues(func() (string, error) {
	const path = "internal/store/format.go"
	declared := declarationIn(path, `const formatVersion = \d+`)
	var version int
	if _, err := fmt.Sscanf(declared, "const formatVersion = %d", &version); err != nil {
		return "", fmt.Errorf("%s: %q: %w", path, declared, err)
	}
	overlay, err := replaceIn(nil, path, declared, fmt.Sprint("const formatVersion = ", version-1))
	if err != nil {
		return "", err
	}
	return build("scheduler-server-earlier", "../../server", overlay)
})

// TestFaultRollingUpgrade upgrades three servers on etcd.
func TestFaultRollingUpgrade(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 33)
	old, err := earlier()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnsemble(t, f, old, onEtcd, unwrapped)
	formats := func() (written, newest int) {
		info, err := e.leader().client.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.Store.Format, info.Store.NewestFormat
	}
	before, _ := formats()
	finish := func() (string, int) {
		t.Helper()
		out, code, err := command("upgrade", "finish", "--endpoint", "http://"+e.replicas[2].address)
		if err != nil {
			t.Fatal(err)
		}
		return out, code
	}
	for range rounds(1, 20) {
		for _, step := range []struct{ name, binary string }{
			{"upgrade", serverBinary},
			{"back", old},
			{"upgrade again", serverBinary},
			{"back again", old},
		} {
			e.round(step.name, func() {
				for n, r := range e.replicas {
					e.awaitWrites(20)
					if n == 0 {
						r.kill()
					} else {
						r.stop()
					}
					r.binary = step.binary
					e.launch(r)
					f.happened()
				}
				e.awaitWrites(20)
			})
			if written, _ := formats(); written != before {
				t.Fatalf("%s: the store has format %d, want %d until the upgrade is finished", step.name, written, before)
			}
		}
	}
	// While a server of the earlier program runs, the upgrade cannot be finished.
	for n, r := range e.replicas {
		out, _ := finish() // rejected, or nothing to do if the earlier program leads
		if written, _ := formats(); written != before {
			t.Fatalf("the upgrade was finished although %d servers cannot read the new format: %s", 3-n, out)
		}
		r.stop()
		r.binary = serverBinary
		e.launch(r)
	}
	e.startWriting()
	e.awaitWrites(20)
	if out, code := finish(); code != 0 {
		t.Fatalf("finish the upgrade: %s", out)
	}
	eventually.True(t, "every server writes the newest format", func() bool {
		return !slices.ContainsFunc(e.replicas, func(r *replica) bool {
			info, err := r.client.Server(t.Context())
			return err != nil || info.Store.Format != info.Store.NewestFormat || info.Store.Format <= before
		})
	})
	e.awaitWrites(20)
	e.stopWriting()
	e.recover()
	e.judge()
}
