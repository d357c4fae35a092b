//go:build faults

package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/proxytest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// lease of the servers of these tests.
const lease = 3 * time.Second

// replica is one of several servers on one store, at an address that stays the same.
type replica struct {
	*process
	name, address string
	// contender asks this server only, and once.
	contender *client.Client
	binary    string
	args      []string
	wrap      []string
	// links are between it and each member of etcd, or each of the others, to and fro.
	links []link
	// peer is its member, where its store is one: name=https://host:port.
	peer string
}

// link is a proxy at a server.
type link struct {
	*proxy
	inward bool // others come to the server through it
}

// set changes what becomes of the bytes that the server sends and gets.
func (l link) set(there, back weather) {
	if l.inward {
		there, back = back, there
	}
	l.proxy.set(there, back)
}

// ensemble is a world with three servers on an etcd cluster of three, or whose stores are
// the cluster.
type ensemble struct {
	*world
	members  []*member // of etcd
	replicas []*replica
	record   *record
}

// newEnsemble starts one. on gives the servers their store; wrap is what runs the nth
// server.
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
	key := filepath.Join(t.TempDir(), "seal.key") // the same for all of them
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
		// Each begins with another server.
		clients = append(clients, newClient(t, client.Options{Endpoints: slices.Concat(addresses[n%3:], addresses[:n%3]), MaxRetries: 2, RequestTimeout: 10 * time.Second}))
	}
	e.clients = func(writer int) *client.Client { return clients[writer] }
	e.fill()
	if e.members == nil { // the connections to the others are no leak
		first, err := e.leader().figures()
		if err != nil {
			t.Fatal(err)
		}
		e.first = &first
	}
	t.Cleanup(e.stopWriting)
	return e
}

// onEtcd has an etcd cluster of three be the store.
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

// unwrapped is a server that runs by itself.
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

// leads reports whether a server says that it leads.
func (r *replica) leads() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	info, err := r.client.Server(ctx)
	return err == nil && info.Leader
}

// leader waits for a server that leads, other than those that are left out.
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

// toMember does something to all links to a member of etcd: what lies between it and the
// servers goes on without it.
func (e *ensemble) toMember(m *member, do func(*proxy)) {
	n := slices.Index(e.members, m)
	for _, r := range e.replicas {
		do(r.links[n].proxy)
	}
}

// follower is a server that does not lead.
func (e *ensemble) follower() *replica {
	leader := e.leader()
	return e.replicas[(slices.Index(e.replicas, leader)+1)%len(e.replicas)]
}

// whileDeciding waits until a server sends derived state to etcd, and does something
// before etcd has it: it is in the middle of a pass.
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
		e.t.Fatalf("%s decides nothing any more", r.name)
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

// ensembleFault is what happens to servers that stand together.
type ensembleFault struct {
	name string
	// happens makes it happen while everybody writes, and ends it.
	happens func(e *ensemble)
}

// linkWeather are the ways in which a server loses etcd, or the others.
var linkWeather = []struct{ there, back weather }{{stalled, stalled}, {stalled, fine}, {fine, stalled}}

func (r *replica) set(there, back weather) {
	for _, link := range r.links {
		link.set(there, back)
	}
}

// held are the pieces that the links of a server have held up.
func (r *replica) held() (n int64) {
	for _, link := range r.links {
		held, _ := link.counts()
		n += held
	}
	return n
}

// serverFaults are those of servers on whatever store.
var serverFaults = []ensembleFault{
	{"kill -9 of the leader in the middle of a pass", func(e *ensemble) {
		r := e.leader()
		since := len(e.record.all())
		e.whileDeciding(r, r.kill)
		began := time.Now()
		e.otherDecisions(since, r)
		e.t.Logf("%s after the leader was killed, another one decides", time.Since(began).Round(10*time.Millisecond))
		e.fault.happened()
		e.launch(r)
	}},
	{"the leader stops for longer than its lease, and continues", func(e *ensemble) {
		r := e.leader()
		since := len(e.record.all())
		e.whileDeciding(r, func() { r.signal(syscall.SIGSTOP) })
		e.otherDecisions(since, r)
		e.fault.happened()
		r.signal(syscall.SIGCONT)
		e.awaitWrites(20)
	}},
	{"the leader is cut off", func(e *ensemble) {
		for _, w := range linkWeather {
			r := e.leader()
			since := len(e.record.all())
			held := r.held()
			e.whileDeciding(r, func() { r.set(w.there, w.back) })
			e.otherDecisions(since, r)
			if r.held() == held {
				e.t.Error("nothing was held up")
			}
			e.fault.happened()
			r.set(fine, fine)
			e.awaitWrites(20)
		}
	}},
	{"a server that follows is cut off", func(e *ensemble) {
		for _, w := range linkWeather {
			r := e.follower()
			held := r.held()
			r.set(w.there, w.back)
			eventually.True(e.t, "the server that is cut off says so", func() bool { return r.readiness().status == 503 })
			e.awaitWrites(20) // through the others
			if r.held() == held {
				e.t.Error("nothing was held up")
			}
			e.fault.happened()
			r.set(fine, fine)
			eventually.True(e.t, "it is ready again", func() bool { return r.readiness().status == 200 })
		}
	}},
}

// etcdFaults are those of an etcd cluster.
var etcdFaults = []ensembleFault{
	{"etcd loses its leader", func(e *ensemble) {
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
		eventually.True(e.t, "its links hold something up", func() bool { return r.held() > held })
		since := versionShown(r)
		e.awaitWrites(50)
		direct := e.members[0].connect()
		revision := revisionOf(e.t, direct)
		if _, err := direct.Compact(e.t.Context(), revision); err != nil {
			e.t.Fatal(err)
		}
		if revision <= since {
			e.t.Fatal("the history that the server needs is still there")
		}
		e.fault.happened()
		r.set(fine, fine)
		eventually.True(e.t, "the slow server shows what came meanwhile", func() bool {
			return r.readiness().status == 200 && versionShown(r) >= revision
		})
	}},
}

// versionShown is the revision that a server shows, 0 where it does not say.
func versionShown(r *replica) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	info, err := r.client.Server(ctx)
	if err != nil {
		return 0
	}
	return info.Store.Revision
}

// TestFaultSeveralServers does to three servers on three members of etcd what can become
// of them, while everybody writes through any of them. No decision is lost, none is made
// by two, and what everybody reads and writes is one history.
func TestFaultSeveralServers(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := begin(t, 31)
	newEnsemble(t, f, serverBinary, onEtcd, unwrapped).suffer(slices.Concat(serverFaults, etcdFaults))
}

// suffer has the servers go through faults, each of them in every round, and judges at
// the end.
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
	e.server.Store(e.leader().process)
	e.judge()
}

// round does something to the servers while everybody writes and contends, and then
// judges what they made of it.
func (e *ensemble) round(name string, happens func()) {
	e.t.Helper()
	began := time.Now()
	e.startWriting()
	contest := e.startContest(name)
	happens()
	e.stopWriting()
	contest.stop()
	e.server.Store(e.leader().process)
	e.judgeQuickly()
	e.oracleTerms()
	contest.judge()
	e.t.Logf("%s: %s", name, time.Since(began).Round(100*time.Millisecond))
}

// oracleTerms is a part of oracle (d): each term has one server, and what one term
// writes is before everything that the next one does.
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

// TestFaultClocksApart has the clocks of three servers differ by an hour. Who leads, and
// what is decided, does not depend on them.
func TestFaultClocksApart(t *testing.T) {
	t.Parallel() // it waits most of the time
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
				t.Fatalf("the clocks are not apart: %v", shown)
			}
			f.happened()
			// The leadership goes to a server with another clock.
			r := e.leader()
			since := len(e.record.all())
			e.awaitWrites(20)
			r.stop()
			e.otherDecisions(since, r)
			e.launch(r)
			e.awaitWrites(20)
		})
	}
	e.server.Store(e.leader().process)
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
	return build("scheduler-server-earlier", "../server", overlay)
})

// TestFaultRollingUpgrade exchanges three servers for newer ones, one after the other
// while everybody writes, goes back, and upgrades again. Until the upgrade is finished,
// each program reads what the other has written.
func TestFaultRollingUpgrade(t *testing.T) {
	t.Parallel() // it waits most of the time
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
				t.Fatalf("%s: the store is written in format %d, want %d until the upgrade is finished", step.name, written, before)
			}
		}
	}
	// While a server of the earlier program is up, the upgrade is not finished.
	for n, r := range e.replicas {
		out, _ := finish() // refused, or nothing to do where the earlier program leads
		if written, _ := formats(); written != before {
			t.Fatalf("the upgrade was finished beside %d servers that cannot read what follows: %s", 3-n, out)
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
	e.server.Store(e.leader().process)
	e.judge()
}
