//go:build faults

package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// longestWait is the longest wait of a request, which nothing here comes near to.
const longestWait = time.Minute

// askLeader sends a request until there is a leader for it, and returns how long the last one took.
func (r *replica) askLeader(method, path, body string) (a answer, took time.Duration, err error) {
	for limit := time.Now().Add(eventually.Limit); ; {
		began := time.Now()
		a, err = r.ask(method, path, body)
		took = time.Since(began)
		if err != nil || a.status != http.StatusServiceUnavailable || began.After(limit) {
			return a, took, err
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the interval between two checks
	}
}

// TestFaultPausedLeaderIsSucceeded pauses the leader, again and again, and sends requests that wait for it through the
// others. The next leader answers them, long before their own time-outs, while the first is still paused.
func TestFaultPausedLeaderIsSucceeded(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 35)
	binary, err := tapped()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnsemble(t, f, binary, onThemselves, unwrapped)
	for round := range rounds(3, 20) {
		paused := e.leader()
		paused.signal(syscall.SIGSTOP)
		f.happened()
		var asking sync.WaitGroup
		for _, r := range e.replicas {
			if r == paused {
				continue
			}
			asking.Go(func() {
				p := placement("waits-for-"+r.name, groupName(0), 1, e.number.Add(1))
				p.SetDefaults()
				body, err := json.Marshal(p)
				if err != nil {
					t.Error(err)
					return
				}
				answer, took, err := r.askLeader(http.MethodPut, api.KeyOf(p).URLPath()+"?wait="+longestWait.String(), string(body))
				var got api.Placement
				switch {
				case err != nil || answer.status/100 != 2:
					t.Errorf("round %d, %s: a write is answered with %d %s, %v", round, r.name, answer.status, answer.body, err)
				case json.Unmarshal([]byte(answer.body), &got) != nil || len(got.Status.Clusters) != 1 || took >= longestWait:
					t.Errorf("round %d, %s: a write is answered after %s without its decision: %s", round, r.name, took, answer.body)
				}
				t.Logf("round %d, %s: a write is answered after %s", round, r.name, took.Round(time.Millisecond))
			})
			asking.Go(func() {
				answer, _, err := r.askLeader(http.MethodPost, api.Key{Kind: api.KindCluster, Name: clusterName(0)}.URLPath()+"/heartbeat", "{}")
				if err != nil || answer.status != http.StatusOK {
					t.Errorf("round %d, %s: a heartbeat is answered with %d %s, %v", round, r.name, answer.status, answer.body, err)
				}
			})
		}
		asking.Wait()
		if !paused.alive() {
			t.Fatalf("round %d: the paused server has ended", round)
		}
		paused.signal(syscall.SIGCONT)
		for _, r := range e.replicas { // the writers do not know of them
			if r == paused {
				continue
			}
			key := api.KeyOf(placement("waits-for-"+r.name, groupName(0), 1, 0))
			eventually.True(t, key.String()+" is deleted", func() bool {
				answer, err := r.ask(http.MethodDelete, key.URLPath(), "")
				return err == nil && (answer.status/100 == 2 || answer.status == http.StatusNotFound)
			})
		}
		e.round(fmt.Sprint("after a pause, round ", round), func() { e.awaitWrites(20) })
	}
	e.recover()
	e.judge()
}
