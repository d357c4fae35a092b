//go:build faults

package faults

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// onThemselves makes the servers' own stores the cluster. Every server reaches every other one through a separate
// proxy: all use the same name for a server, which has another address in each one's /etc/hosts.
func onThemselves(e *ensemble) {
	e.t.Helper()
	template := certtest.Loopback("scheduler-server")
	var listen, peers []string
	for _, r := range e.replicas {
		address := proxytest.FreeAddress(e.t)
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			e.t.Fatal(err)
		}
		host := r.name + ".test"
		template.DNSNames = append(template.DNSNames, host)
		listen, peers = append(listen, address), append(peers, fmt.Sprintf("%s=https://%s:%s", r.name, host, port))
	}
	dir := e.t.TempDir()
	certFile, keyFile, caFile := filepath.Join(dir, "peer.crt"), filepath.Join(dir, "peer.key"), filepath.Join(dir, "ca.crt")
	authority := certtest.Authority(e.t)
	authority.Issue(e.t, template).Write(e.t, certFile, keyFile)
	certtest.Write(e.t, caFile, authority.PEM())
	for n, from := range e.replicas {
		own, _, err := net.SplitHostPort(storetest.Addresses(e.t, 1)[0])
		if err != nil {
			e.t.Fatal(err)
		}
		hosts := "127.0.0.1 localhost\n" + own + " " + strings.Join(template.DNSNames, " ") + "\n"
		file := filepath.Join(dir, "hosts-"+from.name)
		if err := os.WriteFile(file, []byte(hosts), 0o600); err != nil {
			e.t.Fatal(err)
		}
		for m, to := range e.replicas {
			if n == m {
				continue
			}
			_, port, err := net.SplitHostPort(listen[m])
			if err != nil {
				e.t.Fatal(err)
			}
			x := startProxyAt(e.t, net.JoinHostPort(own, port), listen[m])
			from.links, to.links = append(from.links, link{x, false}), append(to.links, link{x, true})
		}
		from.wrap = append(from.wrap, "env", tapVariable+"="+e.hearTap(from),
			"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, file)
		from.peer = peers[n]
		from.args = []string{
			"--data-dir", dataDir(e.t), "--cluster-peers", strings.Join(peers, ","), "--cluster-listen", listen[n],
			"--cluster-ca-file", caFile, "--cluster-cert-file", certFile, "--cluster-key-file", keyFile,
		}
	}
}

// tapVariable is the environment variable of a server with tapSource: where to report decisions.
const tapVariable = "FAULTS_TAP"

// tapSource sits between a server and its embedded store, like a tap in front of etcd: it reports the term in which
// derived state is about to be written, waits for a line, and reports the resulting revision.
const tapSource = `package faulttap

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"

	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func Tap(c *clientv3.Client) *clientv3.Client {
	if address := os.Getenv("` + tapVariable + `"); address != "" {
		c.KV = kv{c.KV, address}
	}
	return c
}

type kv struct {
	clientv3.KV
	address string
}

func (k kv) Txn(ctx context.Context) clientv3.Txn { return &txn{Txn: k.KV.Txn(ctx), address: k.address, term: -1} }

type txn struct {
	clientv3.Txn
	address string
	term    int64
	derives bool
}

func (t *txn) If(compares ...clientv3.Cmp) clientv3.Txn {
	for _, c := range compares {
		if p := c.GetCompare(); p.GetTarget() == etcdserverpb.Compare_CREATE && strings.HasPrefix(string(p.GetKey()), "/v1/sys/live/servers/") {
			t.term = p.GetCreateRevision()
		}
	}
	t.Txn = t.Txn.If(compares...)
	return t
}

func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		t.derives = t.derives || op.IsPut() && strings.HasPrefix(string(op.KeyBytes()), "/v1/status/")
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	if !t.derives {
		return t.Txn.Commit()
	}
	c, err := net.Dial("tcp", t.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	fmt.Fprintln(c, t.term)
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		return nil, err
	}
	answer, err := t.Txn.Commit()
	if err == nil && answer.Succeeded {
		fmt.Fprintln(c, answer.Header.Revision)
	}
	return answer, err
}
`

// tapPath is the source file into which tapChanges insert tapSource.
const tapPath = "internal/store/member.go"

var tapChanges = map[string]string{
	"v3client.New(member.Server)": "faulttap.Tap(v3client.New(member.Server))",
	"\nimport (":                  "\nimport (\n\t\"github.com/scheduler/terraform-provider-scheduler/internal/faulttap\"",
}

// tapped is the server that says what it decides. Its members keep so little of their log
// that one that was cut off for a while needs a copy of the database. It is built once.
var tapped = sync.OnceValues(func() (string, error) {
	overlay := map[string]string{"internal/faulttap/tap.go": tapSource}
	replace := func(path, from, to string) error {
		changed, err := replaceIn(overlay, path, from, to)
		maps.Copy(overlay, changed)
		return err
	}
	for from, to := range tapChanges {
		if err := replace(tapPath, from, to); err != nil {
			return "", err
		}
	}
	const limits = "cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = "
	if err := replace("internal/store/peering.go", limits+"1000, 1000", limits+"100, 100"); err != nil {
		return "", err
	}
	return build("scheduler-server-tapped", "../../server", overlay)
})

// hearTap records a server's reports of its decisions, across restarts.
func (e *ensemble) hearTap(r *replica) (address string) {
	e.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { listener.Close() })
	hear := func(c net.Conn) {
		defer c.Close()
		lines := bufio.NewReader(c)
		number := func() int64 {
			line, _ := lines.ReadString('\n') // empty if the server was killed
			n, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			return n
		}
		term := number()
		if term > 0 {
			e.record.send(r.name)
		}
		fmt.Fprintln(c)
		if revision := number(); revision > 0 && term != 0 {
			e.record.note(decided{r.name, term, revision})
		}
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go hear(c)
		}
	}()
	return listener.Addr().String()
}

// storeLeader waits for the server whose member leads the store's cluster.
func (e *ensemble) storeLeader() *replica {
	e.t.Helper()
	var found *replica
	eventually.True(e.t, "the cluster of stores has a leader", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		for _, asked := range e.replicas {
			info, err := asked.client.Server(ctx)
			if err != nil {
				continue
			}
			i := slices.IndexFunc(info.Store.Members, func(m api.StoreMember) bool { return m.Leader })
			if i < 0 {
				continue
			}
			found = e.replicas[slices.IndexFunc(e.replicas, func(r *replica) bool { return r.name == info.Store.Members[i].Name })]
			return true
		}
		return false
	})
	return found
}

// other returns a server that is not among the given ones.
func (e *ensemble) other(than ...*replica) *replica {
	return e.replicas[slices.IndexFunc(e.replicas, func(r *replica) bool { return !slices.Contains(than, r) })]
}

// changeMembers runs a member command on another server.
func (e *ensemble) changeMembers(r *replica, args ...string) {
	e.t.Helper()
	line := append(append([]string{"members"}, args...), "--endpoint", "http://"+e.other(r).address)
	if out, code, err := command(line...); err != nil || code != 0 {
		e.t.Fatalf("%s: exit code %d, %v: %s", strings.Join(line, " "), code, err, out)
	}
}

// replace adds a removed server again, with an empty disk.
func (e *ensemble) replace(r *replica) {
	e.t.Helper()
	e.changeMembers(r, "add", r.peer)
	r.args[slices.Index(r.args, "--data-dir")+1] = dataDir(e.t)
	if !slices.Contains(r.args, "--cluster-join") {
		r.args = append(r.args, "--cluster-join")
	}
	e.launch(r)
	e.awaitWrites(20)
}

// remove removes a member while its server runs, and waits for the server to exit.
func (e *ensemble) remove(r *replica) {
	e.t.Helper()
	e.changeMembers(r, "remove", r.name)
	if code := r.awaitExit(eventually.Limit); code == 0 || !strings.Contains(r.stderr.String(), r.name+" was removed from the cluster") {
		e.t.Errorf("a server that was removed exited with %d:\n%s", code, r.stderr.Tail())
	}
	e.fault.happened()
	e.awaitWrites(20)
}

// peerFaults are the faults of servers whose stores form the cluster.
var peerFaults = []ensembleFault{
	{"leader of the stores killed, and stopped", func(e *ensemble) {
		r := e.storeLeader()
		r.kill()
		e.fault.happened()
		e.awaitWrites(20)
		e.launch(r)
		r = e.storeLeader()
		r.signal(syscall.SIGSTOP)
		e.fault.happened()
		e.awaitWrites(20)
		r.signal(syscall.SIGCONT)
		e.awaitWrites(20)
	}},
	{"follower needs a copy of the database", func(e *ensemble) {
		r := e.follower()
		r.set(stalled, stalled)
		since := versionShown(e.other(r))
		eventually.True(e.t, "the log no longer contains what the member has missed", func() bool { return versionShown(e.other(r)) > since+300 })
		revision := versionShown(e.other(r))
		e.fault.happened()
		r.set(fine, fine)
		eventually.True(e.t, "the slow server shows the changes made meanwhile", func() bool {
			return r.readiness().status == 200 && versionShown(r) >= revision
		})
		e.awaitWrites(20)
	}},
	{"disk lost, and replaced with an empty one", func(e *ensemble) {
		r := e.leader()
		r.kill()
		e.fault.happened()
		e.awaitWrites(20)
		e.changeMembers(r, "remove", r.name)
		e.replace(r)
	}},
	{"members removed and added", func(e *ensemble) {
		for _, r := range []*replica{e.leader(), e.follower()} {
			e.remove(r)
			e.replace(r)
		}
	}},
}

// TestFaultServersAreTheCluster injects the same faults into three servers whose stores form the cluster, and also
// removes members, permanently and for a while.
func TestFaultServersAreTheCluster(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 34)
	binary, err := tapped()
	if err != nil {
		t.Fatal(err)
	}
	newEnsemble(t, f, binary, onThemselves, unwrapped).suffer(slices.Concat(serverFaults, peerFaults))
}
