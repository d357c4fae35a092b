//go:build integration

package integration

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failovers is how often the leader is killed.
const failovers = 4

// balancer is a minimal load balancer: it forwards every connection to the first address that accepts it, starting with
// another one each time.
func balancer(t *testing.T, targets []string) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var carrying sync.WaitGroup
	open := map[net.Conn]bool{}
	var mu sync.Mutex
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		open[c] = true
	}
	carrying.Go(func() {
		for n := 0; ; n++ {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			keep(in)
			for i := range targets {
				out, err := net.Dial("tcp", targets[(n+i)%len(targets)])
				if err != nil {
					continue
				}
				keep(out)
				carrying.Go(func() { pump(in, out) })
				carrying.Go(func() { pump(out, in) })
				break
			}
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		carrying.Wait()
	})
	return listener.Addr().String()
}

// pump copies from one connection to another until either ends.
func pump(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// leader waits for a leader, and returns its index.
func leader(t *testing.T, servers []*process) (at int) {
	t.Helper()
	eventually.True(t, "a server leads", func() bool {
		at = slices.IndexFunc(servers, func(p *process) bool {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			info, err := p.client.Server(ctx)
			return err == nil && info.Leader
		})
		return at >= 0
	})
	return at
}

// TestDistributionFailover has three servers split the workloads of one cluster, with all of their webhooks behind one
// address, and repeatedly kills the leader while it replaces pods and new ones are created. No pod is rejected, never
// are two pods of a workload missing because of the servers, and all splits are correct in the end.
func TestDistributionFailover(t *testing.T) {
	t.Parallel()
	s := startSplitCluster(t, 2, 2)
	etcd, _ := storetest.Etcd(t)
	key := filepath.Join(t.TempDir(), "seal.key")
	webhooks := []string{proxytest.FreeAddress(t), proxytest.FreeAddress(t), proxytest.FreeAddress(t)}
	url := "https://" + balancer(t, webhooks)
	servers := make([]*process, len(webhooks))
	launch := func(n int) {
		servers[n] = startCommand(t, servertest.Binary(t), "serve", "--listen", "127.0.0.1:0", "--etcd-endpoints", etcd, "--key-file", key,
			"--name", fmt.Sprint("server-", n), "--lease", "3s", "--webhook-listen", webhooks[n], "--webhook-url", url, "--spot-return-after", "2s")
	}
	for n := range servers {
		launch(n)
	}
	s.server = servers[leader(t, servers)]
	s.register()
	s.namespace("failover", nil)
	web := s.create(manifest{workloadID: workloadID{"Deployment", "failover", "web"}, replicas: 8, labels: enabled("custom", "2"), readyAfter: pause})
	db := s.create(manifest{workloadID: workloadID{"StatefulSet", "failover", "db"}, replicas: 5, labels: enabled("custom", "1"), readyAfter: pause})
	s.reaches(web, 2, 6)
	s.reaches(db, 1, 4)
	for n := range failovers {
		at := leader(t, servers)
		onDemand := []int{6, 2}[n%2]
		before := len(s.replaced(web))
		s.relabel(web, "custom", fmt.Sprint(onDemand))
		s.relabel(db, "custom", fmt.Sprint(1+2*(1-n%2)))
		eventually.True(t, "the leader replaces pods", func() bool { return len(s.replaced(web)) > before })
		servers[at].kill()
		s.server = servers[(at+1)%len(servers)]
		// While there is no leader, the others admit pods.
		more := s.create(manifest{workloadID: workloadID{"Deployment", "failover", fmt.Sprint("more-", n)}, replicas: 6, labels: enabled("custom", "2"), readyAfter: pause})
		s.rollOut(db, fmt.Sprint("v", n))
		// A pod that the killed server was admitting has no labels and may stay if it is on the right node, so only the
		// nodes count.
		for w, want := range map[workloadID]int{more: 2, web: onDemand, db: 1 + 2*(1-n%2)} {
			s.becomes(w, func(c counts) bool {
				return c.complete() && c.onDemandNodes == want && c.spotNodes == c.wanted-want
			}, "%d on on-demand nodes", want)
		}
		if led := leader(t, servers); led == at {
			t.Fatal("the server that was killed is still the leader")
		}
		launch(at)
	}
	refused, err := s.client.CoreV1().Events("failover").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range refused.Items {
		t.Errorf("a pod was rejected: %s %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Message)
	}
	t.Logf("the leader was killed %d times; of %s and %s, %d and %d pods were replaced", failovers, web, db, len(s.replaced(web)), len(s.replaced(db)))
}
