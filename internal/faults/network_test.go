//go:build faults

package faults

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// TestFaultPausedLeader pauses the leader until another server leads. When it continues, it decides nothing until it is
// the leader again.
func TestFaultPausedLeader(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 9)
	etcd := startEtcd(t, 1)[0]
	w := newWorld(t, f, external(t, []string{etcd.client}, "--lease", "3s")...)
	direct := etcd.connect()
	for range rounds(2, 20) {
		first := w.p()
		w.startWriting()
		w.awaitWrites(20)
		first.signal(syscall.SIGSTOP) // during writes and decisions
		f.happened()
		second := w.start()
		w.awaitWrites(20)
		w.stopWriting()
		second.pause()
		// Nothing runs now that may decide, until the second one is given up.
		since := revisionOf(t, direct)
		first.signal(syscall.SIGCONT)
		leads := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			info, err := first.client.Server(ctx)
			return err == nil && info.Leader
		}
		asked := 0
		eventually.True(t, "the first one leads again", func() bool {
			// It is asked for new decisions in the meantime.
			object := placement(fmt.Sprintf("late-%d", asked%5), groupName(asked%groups), 1, 0)
			object.Metadata.Labels["late"] = fmt.Sprint(asked)
			object.SetDefaults()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, err := first.client.Put(ctx, object, client.PutOptions{}); err == nil { // users may write through any server
				asked++
			}
			return leads() && asked > 0
		})
		givenUp := leftTheLine(t, direct, since)
		w.seen.mu.Lock()
		for _, revision := range statusWrites(t, direct, since) {
			if revision < givenUp {
				w.seen.fenced = append(w.seen.fenced, derivation{revision, "the first server"})
			}
		}
		w.seen.mu.Unlock()
		second.signal(syscall.SIGCONT)
		first.stop()
		w.judgeQuickly()
	}
	w.judge()
}

// leftTheLine returns the revision, after a given one, at which the election key of a leader or candidate was deleted.
func leftTheLine(t testing.TB, direct *clientv3.Client, since int64) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	for resp := range direct.Watch(ctx, "/v1/sys/live/servers/", clientv3.WithPrefix(), clientv3.WithRev(since+1), clientv3.WithFilterPut()) {
		if err := resp.Err(); err != nil {
			t.Fatal(err)
		}
		for _, event := range resp.Events {
			return event.Kv.ModRevision
		}
	}
	t.Fatal("no server was given up")
	return 0
}

func revisionOf(t testing.TB, direct *clientv3.Client) int64 {
	t.Helper()
	resp, err := direct.Get(t.Context(), "/", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

// statusWrites returns the revisions, after a given one, at which derived state was written.
func statusWrites(t testing.TB, direct *clientv3.Client, since int64) []int64 {
	t.Helper()
	until := revisionOf(t, direct)
	if until == since {
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var revisions []int64
	for resp := range direct.Watch(ctx, "/v1/", clientv3.WithPrefix(), clientv3.WithRev(since+1)) {
		if err := resp.Err(); err != nil {
			t.Fatal(err)
		}
		for _, event := range resp.Events {
			if strings.HasPrefix(string(event.Kv.Key), "/v1/status/") && event.Type == clientv3.EventTypePut {
				revisions = append(revisions, event.Kv.ModRevision)
			}
			if event.Kv.ModRevision >= until {
				return revisions
			}
		}
	}
	return revisions
}

// TestFaultEtcdMember kills and pauses members of the etcd cluster, the leader first. Two of three remain, so that
// writes continue after a gap.
func TestFaultEtcdMember(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 10)
	members := startEtcd(t, 3)
	w := newWorld(t, f, external(t, clientAddresses(members))...)
	w.startWriting()
	for range rounds(1, 10) {
		gap := func(what string) {
			t.Helper()
			began := time.Now()
			w.awaitWrites(30)
			t.Logf("after %s writes went on within %s", what, time.Since(began).Round(time.Millisecond))
		}
		m := etcdLeader(t, members)
		m.kill()
		f.happened()
		gap("the leader was killed")
		if err := m.start(); err != nil {
			t.Fatal(err)
		}
		m = etcdLeader(t, members)
		m.signal(syscall.SIGSTOP)
		f.happened()
		gap("the leader was stopped")
		m.signal(syscall.SIGCONT)
		gap("the stopped one went on")
	}
	w.stopWriting()
	w.judge()
}

// TestFaultPartition disconnects the server from its store in every way in which networks fail.
func TestFaultPartition(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 11)
	etcd := startEtcd(t, 1)[0]
	x := startProxy(t, etcd.client)
	w := newWorld(t, f, external(t, []string{x.address()}, "--store-timeout", "2s")...)
	partitions := []struct {
		name  string
		begin func()
		end   func()
		works bool // writes still succeed
	}{
		{"connections reset", func() { x.reset(true) }, func() { x.reset(false) }, false},
		{"no traffic in both directions", func() { x.set(stalled, stalled) }, func() { x.set(fine, fine) }, false},
		{"no traffic to the store", func() { x.set(stalled, fine) }, func() { x.set(fine, fine) }, false},
		{"no traffic from the store", func() { x.set(fine, stalled) }, func() { x.set(fine, fine) }, false},
		{"connections cut at every response", func() { x.set(fine, cutAnswer) }, func() { x.set(fine, fine) }, false},
		{"slow", func() { x.set(slow, slow) }, func() { x.set(fine, fine) }, true},
	}
	for range rounds(1, 5) {
		for _, p := range partitions {
			w.startWriting()
			w.awaitWrites(10)
			held, cut := x.counts()
			p.begin()
			if p.works {
				w.awaitWrites(10)
			} else {
				eventually.True(t, "/readyz says that writes do not work: "+p.name, func() bool { return w.p().readiness().status == 503 })
				// The server gives up waiting for the store, and says so, before its client gives up.
				if err := extra(w, "meanwhile"); err == nil {
					t.Errorf("%s: a write was acknowledged", p.name)
				} else if client.StatusOf(err) < 500 {
					t.Errorf("%s: a write failed without an answer that says so: %v", p.name, err)
				}
				w.readsWorkMeanwhile()
			}
			heldNow, cutNow := x.counts()
			if heldNow == held && cutNow == cut {
				t.Errorf("%s: the proxy neither held nor cut anything", p.name)
			} else {
				f.happened()
			}
			p.end()
			w.awaitWrites(20)
			w.stopWriting()
			w.judgeQuickly()
		}
	}
	w.judge()
}

// TestFaultLostWatch breaks the server's watch on its store while others write to the store and compact its history.
func TestFaultLostWatch(t *testing.T) {
	f := begin(t, 13)
	etcd := startEtcd(t, 1)[0]
	x := startProxy(t, etcd.client)
	w := newWorld(t, f, external(t, []string{x.address()}, "--store-timeout", "2s")...)
	direct := etcd.connect()
	for round := range rounds(2, 20) {
		for _, name := range []string{"gone", "again"} {
			if err := extra(w, name); err != nil {
				t.Fatal(err)
			}
		}
		w.startWriting()
		w.awaitWrites(20)
		w.stopWriting()
		info, err := w.p().client.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x.reset(true)
		// One object is deleted, another is deleted and created again.
		parts := map[string]string{}
		for _, part := range []string{"spec", "status"} {
			key := "/v1/" + part + "/placement/" + namespace + "/"
			value, err := direct.Get(t.Context(), key+"again")
			if err != nil || len(value.Kvs) != 1 {
				t.Fatalf("%s: %v", key, err)
			}
			parts[key+"again"] = string(value.Kvs[0].Value)
			for _, name := range []string{"gone", "again"} {
				if _, err := direct.Delete(t.Context(), key+name); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, part := range []string{"spec", "status"} {
			key := "/v1/" + part + "/placement/" + namespace + "/again"
			if _, err := direct.Put(t.Context(), key, parts[key]); err != nil {
				t.Fatal(err)
			}
		}
		revision := revisionOf(t, direct)
		if _, err := direct.Compact(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		if revision <= info.Store.Revision {
			t.Fatalf("round %d: the history that the server needs was not compacted", round)
		}
		f.happened()
		x.reset(false)
		key := func(name string) api.Key { return api.KeyOf(placement(name, "g0", 1, 0)) }
		eventually.True(t, "the server has caught up", func() bool {
			_, gone := w.p().client.Get(t.Context(), key("gone"))
			again, err := w.p().client.Get(t.Context(), key("again"))
			return client.IsNotFound(gone) && err == nil && versionOf(again) > info.Store.Revision
		})
		w.judgeQuickly()
	}
	w.judge()
}

func versionOf(object api.Object) int64 {
	version, err := strconv.ParseInt(object.Meta().ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// TestFaultOlderCopy replaces the store of a running server by an older copy, or an empty one. The server reports it at
// once, and acknowledges nothing that does not exist afterwards.
func TestFaultOlderCopy(t *testing.T) {
	t.Run("directory", func(t *testing.T) {
		f := begin(t, 14)
		dir := dataDir(t)
		w := newWorld(t, f, embedded(dir)...)
		w.p().signal(syscall.SIGSTOP)
		older := copyDir(t, dir)
		w.p().signal(syscall.SIGCONT)
		w.startWriting()
		w.awaitWrites(40)
		w.stopWriting()
		last, changes := highWater(dir), 0
		eventually.True(t, "the high-water mark has everything that was written", func() bool {
			if now := highWater(dir); now != last {
				last, changes = now, changes+1
			}
			return changes > 2 // it is one write of the server's own late, and one may just have begun
		})
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(older, dir); err != nil {
			t.Fatal(err)
		}
		f.happened()
		w.replaced(func() {
			// The next start says the same, and how to go on nevertheless.
			mark := dir + ".high-water-mark"
			p := launch(t, nil, w.binary, w.args...)
			if code := p.awaitExit(eventually.Limit); code == 0 || !p.stderr.Contains("the data directory was put back to an older copy") || !p.stderr.Contains("remove "+mark) {
				t.Errorf("the server exited with %d:\n%s", code, p.stderr.Tail())
			}
			if err := os.Remove(mark); err != nil {
				t.Fatal(err)
			}
		})
	})
	for _, variant := range []string{"older", "empty"} {
		t.Run(variant, func(t *testing.T) {
			f := begin(t, 14)
			etcd := startEtcd(t, 1)[0]
			w := newWorld(t, f, external(t, []string{etcd.client})...)
			etcd.signal(syscall.SIGSTOP)
			older := copyDir(t, etcd.dir)
			etcd.signal(syscall.SIGCONT)
			w.startWriting()
			w.awaitWrites(40)
			w.stopWriting()
			etcd.kill()
			if err := os.RemoveAll(etcd.dir); err != nil {
				t.Fatal(err)
			}
			if variant == "older" {
				if err := os.Rename(older, etcd.dir); err != nil {
					t.Fatal(err)
				}
			}
			if err := etcd.start(); err != nil {
				t.Fatal(err)
			}
			f.happened()
			w.replaced(func() {})
		})
	}
}

// replaced waits until the server has noticed that its store has been replaced, and continues with its contents after
// accept.
func (w *world) replaced(accept func()) {
	w.t.Helper()
	p := w.p()
	acknowledged := map[api.Key]int64{}
	began := time.Now()
	for n := int64(0); p.alive(); n++ {
		object := placement(fmt.Sprintf("after-%d", n), "g0", 1, w.number.Add(1))
		if _, err := put(p, object); err == nil {
			acknowledged[api.KeyOf(object)] = numberOf(object)
		}
		if time.Since(began) > eventually.Limit {
			w.t.Fatalf("the server has not noticed the new store, /readyz returns %+v:\n%s", p.readiness(), p.stderr.Tail())
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the interval between two checks
	}
	if code := p.awaitExit(eventually.Limit); code == 0 || !p.stderr.Contains("the store was replaced under the running server") {
		w.t.Errorf("the server exited with %d:\n%s", code, p.stderr.Tail())
	}
	w.t.Logf("noticed after %s", time.Since(began).Round(time.Millisecond))
	accept()
	w.start()
	there, err := objects(w.p())
	if err != nil {
		w.t.Fatal(err)
	}
	for key, number := range acknowledged {
		if there[key] == nil || numberOf(there[key]) != number {
			w.t.Errorf("%s was acknowledged after the store had been replaced, but is %+v", key, there[key])
		}
	}
	// From now on, the older store is the valid one.
	w.seen.forget()
	w.ledger.adopt(there)
	if there[api.Key{Kind: api.KindMetricsProvider, Name: providerName}] == nil {
		for _, object := range fleetObjects() {
			w.mustPut(object)
		}
	}
	w.startWriting()
	w.awaitWrites(20)
	w.stopWriting()
	w.judge()
}
