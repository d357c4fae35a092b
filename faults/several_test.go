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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/proxytest"
)

// lease of the servers of these tests.
const lease = 3 * time.Second

// replica is one of several servers on one etcd cluster, at an address that stays the
// same.
type replica struct {
	*process
	name, address string
	args          []string
	wrap          []string
	// links are between it and each member of etcd.
	links []*proxy
}

// crew is a world with three servers on an etcd cluster of three.
type crew struct {
	*world
	members  []*member
	replicas []*replica
	record   *record
}

// newCrew starts one. wrap is what runs the nth server.
func newCrew(t testing.TB, f *fault, binary string, wrap func(n int) []string) *crew {
	t.Helper()
	c := &crew{
		world:   &world{t: t, fault: f, binary: binary, ledger: newLedger(), seen: newHistory(), random: random(t)},
		members: startEtcd(t, 3), record: &record{},
	}
	key := filepath.Join(t.TempDir(), "seal.key")
	var addresses []string
	for n := range 3 {
		r := &replica{name: fmt.Sprint("s", n), address: proxytest.FreeAddress(t), wrap: wrap(n)}
		var etcd []string
		for _, m := range c.members {
			link := startProxy(t, startTap(t, r.name, m.client, c.record).address)
			r.links, etcd = append(r.links, link), append(etcd, link.address())
		}
		r.args = external(t, etcd, "--lease", lease.String(), "--name", r.name, "--listen", r.address, "--store-timeout", "2s")
		r.args[3] = key // the same for all of them
		c.replicas, addresses = append(c.replicas, r), append(addresses, "http://"+r.address)
		c.launch(r)
	}
	var clients []*client.Client
	for n := range writers {
		// Each begins with another server.
		one, err := client.New(client.Options{Endpoints: slices.Concat(addresses[n%3:], addresses[:n%3]), MaxRetries: 2, RequestTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(one.Close)
		clients = append(clients, one)
	}
	c.clients = func(writer int) *client.Client { return clients[writer] }
	c.fill()
	t.Cleanup(c.stopWriting)
	return c
}

func (c *crew) launch(r *replica) {
	c.t.Helper()
	r.process = launch(c.t, r.wrap, c.binary, r.args...).awaitReady()
	c.follow(r.process)
}

// leads reports whether a server says that it leads.
func (r *replica) leads() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	info, err := r.client.Server(ctx)
	return err == nil && info.Leader
}

// leader waits for a server that leads, other than those that are left out.
func (c *crew) leader(without ...*replica) *replica {
	c.t.Helper()
	var found *replica
	eventually.True(c.t, "another server leads", func() bool {
		for _, r := range c.replicas {
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
func (c *crew) toMember(m *member, do func(*proxy)) {
	n := slices.Index(c.members, m)
	for _, r := range c.replicas {
		do(r.links[n])
	}
}

// follower is a server that does not lead.
func (c *crew) follower() *replica {
	leader := c.leader()
	return c.replicas[(slices.Index(c.replicas, leader)+1)%len(c.replicas)]
}

// whileDeciding waits until a server sends derived state to etcd, and does something
// before etcd has it: it is in the middle of a pass.
func (c *crew) whileDeciding(r *replica, do func()) {
	c.t.Helper()
	var once sync.Once
	done := make(chan struct{})
	c.record.ask(func(server string) {
		if server == r.name {
			once.Do(func() {
				do()
				close(done)
			})
		}
	})
	defer c.record.ask(nil)
	select {
	case <-done:
	case <-time.After(eventually.Limit):
		c.t.Fatalf("%s decides nothing any more", r.name)
	}
}

// otherDecisions waits until servers other than one have decided something since a
// moment.
func (c *crew) otherDecisions(since int, without *replica) {
	c.t.Helper()
	eventually.True(c.t, "another server decides", func() bool {
		return slices.ContainsFunc(c.record.all()[since:], func(d decided) bool { return d.term > 0 && d.server != without.name })
	})
}

// crewFault is what happens to servers that stand together.
type crewFault struct {
	name string
	// happens makes it happen while everybody writes, and ends it.
	happens func(c *crew)
}

// linkWeather are the ways in which a server loses etcd.
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

var crewFaults = []crewFault{
	{"kill -9 of the leader in the middle of a pass", func(c *crew) {
		r := c.leader()
		since := len(c.record.all())
		c.whileDeciding(r, r.kill)
		began := time.Now()
		c.otherDecisions(since, r)
		c.t.Logf("%s after the leader was killed, another one decides", time.Since(began).Round(10*time.Millisecond))
		c.fault.happened()
		c.launch(r)
	}},
	{"the leader stops for longer than its lease, and continues", func(c *crew) {
		r := c.leader()
		since := len(c.record.all())
		c.whileDeciding(r, func() { r.signal(syscall.SIGSTOP) })
		c.otherDecisions(since, r)
		c.fault.happened()
		r.signal(syscall.SIGCONT)
		c.awaitWrites(20)
	}},
	{"the leader is cut off from etcd", func(c *crew) {
		for _, w := range linkWeather {
			r := c.leader()
			since := len(c.record.all())
			held := r.held()
			c.whileDeciding(r, func() { r.set(w.there, w.back) })
			c.otherDecisions(since, r)
			if r.held() == held {
				c.t.Error("nothing was held up")
			}
			c.fault.happened()
			r.set(fine, fine)
			c.awaitWrites(20)
		}
	}},
	{"a server that follows is cut off from etcd", func(c *crew) {
		for _, w := range linkWeather {
			r := c.follower()
			held := r.held()
			r.set(w.there, w.back)
			eventually.True(c.t, "the server that is cut off says so", func() bool { return r.readiness().status == 503 })
			c.awaitWrites(20) // through the others
			if r.held() == held {
				c.t.Error("nothing was held up")
			}
			c.fault.happened()
			r.set(fine, fine)
			eventually.True(c.t, "it is ready again", func() bool { return r.readiness().status == 200 })
		}
	}},
	{"etcd loses its leader", func(c *crew) {
		m := etcdLeader(c.t, c.members)
		m.kill()
		c.toMember(m, func(link *proxy) { link.reset(true) })
		c.fault.happened()
		c.awaitWrites(20)
		if err := m.start(); err != nil {
			c.t.Fatal(err)
		}
		c.toMember(m, func(link *proxy) { link.reset(false) })
		m = etcdLeader(c.t, c.members)
		m.signal(syscall.SIGSTOP)
		c.toMember(m, func(link *proxy) { link.set(stalled, stalled) })
		c.fault.happened()
		c.awaitWrites(20)
		m.signal(syscall.SIGCONT)
		c.toMember(m, func(link *proxy) { link.set(fine, fine) })
		c.awaitWrites(20)
	}},
	{"compaction under a slow follower", func(c *crew) {
		r := c.follower()
		held := r.held()
		r.set(fine, stalled)
		eventually.True(c.t, "its links hold something up", func() bool { return r.held() > held })
		since := versionShown(r)
		c.awaitWrites(50)
		direct := c.members[0].connect()
		revision := revisionOf(c.t, direct)
		if _, err := direct.Compact(c.t.Context(), revision); err != nil {
			c.t.Fatal(err)
		}
		if revision <= since {
			c.t.Fatal("the history that the server needs is still there")
		}
		c.fault.happened()
		r.set(fine, fine)
		eventually.True(c.t, "the slow server shows what came meanwhile", func() bool {
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
	c := newCrew(t, f, serverBinary, func(int) []string { return nil })
	for round := range rounds(1, 20) {
		for _, fault := range crewFaults {
			began := time.Now()
			c.startWriting()
			contest := c.startContest(fmt.Sprintf("%s, round %d", fault.name, round))
			c.awaitWrites(20)
			fault.happens(c)
			c.stopWriting()
			contest.stop()
			c.world.server.Store(c.leader().process)
			c.judgeQuickly()
			c.oracleTerms()
			contest.judge()
			t.Logf("%s: %s", fault.name, time.Since(began).Round(100*time.Millisecond))
		}
	}
	c.world.server.Store(c.leader().process)
	c.judge()
}

// oracleTerms is a part of oracle (d): each term has one server, and what one term
// writes is before everything that the next one does.
func (c *crew) oracleTerms() {
	c.t.Helper()
	list := c.record.all()
	if len(list) == 0 {
		c.t.Error("oracle (d) has seen no decision")
	}
	if err := termsInOrder(list); err != nil {
		c.t.Errorf("oracle (d), terms do not overlap: %v", err)
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
	c := newCrew(t, f, binary, func(n int) []string {
		file := filepath.Join(t.TempDir(), fmt.Sprint("clock", n))
		if err := os.WriteFile(file, []byte([]string{"-3600", "0", "3600"}[n]), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"env", clockVariable + "=" + file}
	})
	for round := range rounds(1, 20) {
		c.startWriting()
		contest := c.startContest(fmt.Sprint("clocks, round ", round))
		var shown []time.Time
		for _, r := range c.replicas {
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
		r := c.leader()
		since := len(c.record.all())
		c.awaitWrites(20)
		r.stop()
		c.otherDecisions(since, r)
		c.launch(r)
		c.awaitWrites(20)
		c.stopWriting()
		contest.stop()
		c.world.server.Store(c.leader().process)
		c.judgeQuickly()
		c.oracleTerms()
		contest.judge()
	}
	c.world.server.Store(c.leader().process)
	c.judge()
}
