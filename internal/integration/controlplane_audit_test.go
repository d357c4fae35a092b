//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// ending is a request that ended a pod, from the API server's audit log.
type ending struct {
	by  string // the user
	at  time.Time
	uid string // UID of the pod, "" if the request did not contain it
	// eviction says that it used the eviction API, which respects disruption budgets.
	eviction        bool
	namespace, name string
}

// endings returns all requests that ended pods, in order, without rejected ones and dry runs.
func (p *controlPlane) endings() []ending {
	p.t.Helper()
	// The API server may be in the middle of a line.
	var log []byte
	eventually.True(p.t, "the audit log ends with a whole line", func() bool {
		var err error
		if log, err = os.ReadFile(filepath.Join(p.dir, "audit.log")); err != nil {
			p.t.Fatal(err)
		}
		return len(log) == 0 || log[len(log)-1] == '\n'
	})
	type options struct {
		DryRun        []string
		Preconditions struct{ UID string }
	}
	var out []ending
	for line := range bytes.Lines(log) {
		var event struct {
			Verb, RequestURI         string
			User                     struct{ Username string }
			ObjectRef                struct{ Namespace, Name, Subresource string }
			ResponseStatus           struct{ Code int }
			RequestReceivedTimestamp time.Time
			RequestObject            struct {
				options
				DeleteOptions options // options of an eviction
			}
		}
		if err := json.Unmarshal(line, &event); err != nil {
			p.t.Fatalf("audit log: %v\n%s", err, line)
		}
		asked := event.RequestObject.options
		if event.ObjectRef.Subresource == "eviction" {
			asked = event.RequestObject.DeleteOptions
		}
		if event.ResponseStatus.Code > 299 || strings.Contains(event.RequestURI, "dryRun=") || len(asked.DryRun) > 0 {
			continue
		}
		out = append(out, ending{
			by: event.User.Username, at: event.RequestReceivedTimestamp, uid: asked.Preconditions.UID,
			eviction: event.ObjectRef.Subresource == "eviction", namespace: event.ObjectRef.Namespace, name: event.ObjectRef.Name,
		})
	}
	// The log contains them in the order in which they were answered.
	slices.SortStableFunc(out, func(a, b ending) int { return a.at.Compare(b.at) })
	return out
}

// endedBy returns, by UID, the first request that ended each pod.
//
// A request names a pod, and a StatefulSet reuses names: the request was about the last pod with this name that existed
// at that time.
func (h *history) endedBy(endings []ending) map[string]ending {
	pods, _ := h.snapshot()
	type life struct {
		uid   string
		began time.Time
	}
	lives, known := map[string][]life{}, map[string]bool{}
	for _, s := range pods {
		if !known[s.uid] {
			known[s.uid] = true
			name := s.workload.namespace + "/" + s.name
			lives[name] = append(lives[name], life{s.uid, s.seen})
		}
	}
	out := map[string]ending{}
	for _, e := range endings {
		uid := e.uid
		if uid == "" {
			for _, l := range lives[e.namespace+"/"+e.name] {
				if l.began.Before(e.at) {
					uid = l.uid
				}
			}
		}
		if _, known := out[uid]; !known && uid != "" {
			out[uid] = e
		}
	}
	return out
}

// replaced returns the last states of the pods that a user ended, by workload.
func (h *history) replaced(by string, endings []ending) map[workloadID][]podState {
	ended := h.endedBy(endings)
	pods, _ := h.snapshot()
	last := map[string]podState{}
	out := map[workloadID][]podState{}
	for _, s := range pods {
		if before, known := last[s.uid]; known && (s.deleting || s.gone) && !before.deleting && ended[s.uid].by == by {
			out[before.workload] = append(out[before.workload], before)
		}
		last[s.uid] = s
	}
	return out
}

// outage is the largest number of pods of a workload that were missing at the same time because of a user.
type outage struct {
	workload workloadID
	pods     int
	revision int64
}

// outages replays the history. A pod that the user ends is missing until a later one is ready in its place, or until as
// many pods are ready as are requested. Pods that others end are missing, too: a pod that becomes ready replaces the
// one that has been missing for longest, whoever ended it.
func (h *history) outages(by string, endings []ending) []outage {
	ended := h.endedBy(endings)
	pods, workloads := h.snapshot()
	type pod struct {
		first               int64 // revision
		ready, ending, used bool
	}
	type hole struct {
		revision int64
		ours     bool
	}
	type state struct {
		wanted int
		pods   map[string]*pod
		holes  []hole
	}
	states := map[workloadID]*state{}
	worst := map[workloadID]outage{}
	of := func(w workloadID) *state {
		if states[w] == nil {
			states[w] = &state{pods: map[string]*pod{}}
		}
		return states[w]
	}
	for len(pods) > 0 || len(workloads) > 0 {
		if len(pods) == 0 || len(workloads) > 0 && workloads[0].revision < pods[0].revision {
			w := workloads[0]
			workloads = workloads[1:]
			of(w.workload).wanted = w.wanted
			continue
		}
		s := pods[0]
		pods = pods[1:]
		if s.workload == (workloadID{}) {
			continue
		}
		st := of(s.workload)
		p := st.pods[s.uid]
		if p == nil {
			p = &pod{first: s.revision}
			st.pods[s.uid] = p
		}
		if (s.deleting || s.gone) && !p.ending {
			p.ending = true
			st.holes = append(st.holes, hole{s.revision, ended[s.uid].by == by})
		}
		if p.ready = s.ready && !p.ending; p.ready && !p.used {
			for i, missing := range st.holes {
				if missing.revision < p.first {
					st.holes = append(st.holes[:i], st.holes[i+1:]...)
					break
				}
			}
			p.used = true
		}
		ready := 0
		for _, p := range st.pods {
			if p.ready {
				ready++
			}
		}
		if s.gone {
			delete(st.pods, s.uid)
		}
		if ready >= st.wanted {
			st.holes = nil
		}
		ours := 0
		for _, missing := range st.holes {
			if missing.ours {
				ours++
			}
		}
		if ours > worst[s.workload].pods {
			worst[s.workload] = outage{s.workload, ours, s.revision}
		}
	}
	var out []outage
	for _, o := range worst {
		out = append(out, o)
	}
	return out
}

// checkAvailability checks, with the watch history of the whole test and the API server's audit log, that the server
// never had more than one pod of a workload missing at a time, and logs how many it replaced.
func checkAvailability(t *testing.T, p *controlPlane, h *history) {
	t.Helper()
	endings := p.endings()
	for _, o := range h.outages(userServer, endings) {
		if o.pods > 1 {
			t.Errorf("%s: at revision %d, %d pods were missing because of the server, want at most one\n%s", o.workload, o.revision, o.pods, h.story(o.workload, endings))
		}
	}
	pods, evictions := 0, 0
	for _, of := range h.replaced(userServer, endings) {
		pods += len(of)
	}
	for _, e := range endings {
		if e.by == userServer && e.eviction {
			evictions++
		}
	}
	states, _ := h.snapshot()
	t.Logf("availability: %d states of pods, the server replaced %d pods (%d requests for evictions), never two of a workload at once: %t", len(states), pods, evictions, !t.Failed())
}

// story describes what happened to the pods of a workload.
func (h *history) story(w workloadID, endings []ending) string {
	ended := h.endedBy(endings)
	pods, workloads := h.snapshot()
	var b strings.Builder
	for _, s := range workloads {
		if s.workload == w {
			fmt.Fprintf(&b, "%d: %d wanted, settled %t\n", s.revision, s.wanted, s.settled)
		}
	}
	for _, s := range pods {
		if s.workload == w {
			fmt.Fprintf(&b, "%d %s: %s on %q, %q, ready %t, ending %t, gone %t", s.revision, s.seen.Format("05.000"), s.name, s.node, s.affinity, s.ready, s.deleting, s.gone)
			if s.deleting || s.gone {
				fmt.Fprintf(&b, " by %s", ended[s.uid].by)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
