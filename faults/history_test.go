//go:build faults

package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestFaultHistory kills the leader of three servers while decisions move, and has it hand over in between. Afterwards the
// history is a chain for every object, up to its present decision: no entry is missing, doubled or out of order.
func TestFaultHistory(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 35)
	e := newEnsemble(t, f, serverBinary, onEtcd, unwrapped)
	kills, changes := rounds(3, 50), rounds(2, 20)
	for round := range kills {
		e.round(fmt.Sprintf("the leader killed while decisions move, round %d", round), func() {
			r := e.leader()
			e.awaitWrites(20)
			time.Sleep(time.Duration(e.random.IntN(500)) * time.Millisecond) //nolint:forbidigo // the time of the kill is what varies
			since := e.record.counts()
			r.kill()
			f.happened()
			e.otherDecisions(since, r)
			e.launch(r)
		})
		if round < changes {
			e.round(fmt.Sprintf("the leader stopped while decisions move, round %d", round), func() {
				r := e.leader()
				e.awaitWrites(20)
				r.stop()
				f.happened()
				e.leader(r)
				e.launch(r)
			})
		}
	}
	e.recover()
	e.judge()
	e.judgeHistory(wholeHistory)
}

// recordedMove is an entry of the history.
type recordedMove struct {
	Revision int64 `json:"revision"`
	Object   struct {
		api.Key
		UID string `json:"uid"`
	} `json:"object"`
	Before *recordedDecision `json:"before"`
	After  *recordedDecision `json:"after"`
	Cause  api.Cause         `json:"cause"`
}

// recordedDecision is a decision in the history.
type recordedDecision struct {
	Clusters []string         `json:"clusters"`
	Replicas map[string]int64 `json:"replicas"`
}

// recordedGap is a part of the history in which entries may be missing, and why.
type recordedGap struct {
	Since  int64  `json:"since"`
	Until  int64  `json:"until"`
	Reason string `json:"reason"`
}

// recordedHistory is the history of a server, the oldest entry first.
type recordedHistory struct {
	moves []recordedMove
	gaps  []recordedGap
}

// recorded reads the history of a server.
func (p *process) recorded() (h recordedHistory, err error) {
	query := url.Values{"order": {"oldest"}, "limit": {"500"}}
	for {
		answer, err := p.ask(http.MethodGet, "/v1/history?"+query.Encode(), "")
		if err != nil {
			return h, err
		}
		if answer.status != http.StatusOK {
			return h, fmt.Errorf("the history: %d %s", answer.status, answer.body)
		}
		var page struct {
			Items    []recordedMove `json:"items"`
			Gaps     []recordedGap  `json:"gaps"`
			Continue string         `json:"continue"`
		}
		if err := json.Unmarshal([]byte(answer.body), &page); err != nil {
			return h, err
		}
		h.moves, h.gaps = append(h.moves, page.Items...), append(h.gaps, page.Gaps...)
		if page.Continue == "" {
			return h, nil
		}
		query.Set("continue", page.Continue)
	}
}

// hasGap reports whether entries may be missing between two revisions.
func (h *recordedHistory) hasGap(after, before int64) bool {
	return slices.ContainsFunc(h.gaps, func(g recordedGap) bool { return g.Since < before && after < g.Until })
}

// oracleHistory checks that the history of each object is a chain from no decision to the present one, except where there is a
// gap: no entry is missing, doubled or out of order.
func oracleHistory(h recordedHistory, there map[api.Key]api.Object) error {
	var errs []error
	failed := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	last := map[string]recordedMove{} // by UID
	for n, m := range h.moves {
		if n > 0 && m.Revision < h.moves[n-1].Revision {
			failed("the entry of revision %d comes after that of %d", m.Revision, h.moves[n-1].Revision)
		}
		before := last[m.Object.UID]
		if before.Revision == m.Revision {
			failed("%s has two entries of revision %d", m.Object.Key, m.Revision)
		}
		if !reflect.DeepEqual(before.After, m.Before) && !h.hasGap(before.Revision, m.Revision) {
			failed("the decision of %s was %v at revision %d, and %v before it moved at %d", m.Object.Key, before.After, before.Revision, m.Before, m.Revision)
		}
		last[m.Object.UID] = m
	}
	for key, object := range there {
		s, ok := sight(object)
		if !ok || s.decision == 0 && len(s.clusters) == 0 {
			continue
		}
		after := last[s.uid].After
		if after == nil {
			after = &recordedDecision{}
		}
		var clusters []string
		for _, cluster := range after.Clusters {
			if key.Kind == api.KindWorkload {
				cluster = fmt.Sprintf("%s=%d", cluster, after.Replicas[cluster])
			}
			clusters = append(clusters, cluster)
		}
		if !sameClusters(clusters, s.clusters) && !h.hasGap(last[s.uid].Revision, math.MaxInt64) {
			failed("the decision of %s is %v, the last one in the history is %v", key, s.clusters, clusters)
		}
	}
	return errors.Join(errs...)
}

// wholeHistory says that a history may not have gaps.
func wholeHistory(recordedGap) bool { return false }

// beforeHistory says that a server of a version without a history may have led.
func beforeHistory(g recordedGap) bool {
	return strings.Contains(g.Reason, "a server led that does not record decisions")
}

// judgeHistory checks the history of a server whose objects no longer change. gap says which gaps it may have.
func (w *world) judgeHistory(p *process, gap func(recordedGap) bool) (h recordedHistory) {
	w.t.Helper()
	there, err := objects(p)
	if err != nil {
		w.t.Fatal(err)
	}
	if h, err = p.recorded(); err != nil {
		w.t.Fatal(err)
	}
	if err := oracleHistory(h, there); err != nil {
		w.t.Error(err)
	}
	for _, g := range h.gaps {
		if !gap(g) {
			w.t.Errorf("the history has a gap after revision %d up to %d: %s", g.Since, g.Until, g.Reason)
		}
	}
	if len(h.moves) == 0 {
		w.t.Error("the history is empty")
	}
	w.t.Logf("%d entries in the history, %d gaps", len(h.moves), len(h.gaps))
	return h
}

// judgeHistory checks that all servers have the same history, and that it is whole except for some gaps.
func (e *ensemble) judgeHistory(gap func(recordedGap) bool) (first recordedHistory) {
	e.t.Helper()
	first = e.world.judgeHistory(e.replicas[0].process, gap)
	for _, r := range e.replicas[1:] {
		h, err := r.recorded()
		if err != nil {
			e.t.Fatal(err)
		}
		if !reflect.DeepEqual(h, first) {
			e.t.Errorf("%s has a history of %d entries that differs from that of %s with %d", r.name, len(h.moves), e.replicas[0].name, len(first.moves))
		}
	}
	if len(first.moves) < 100 {
		e.t.Errorf("only %d decisions have moved", len(first.moves))
	}
	return first
}

// unfounded reports whether nothing that a decision was made on may have been recorded: servers of a version that records
// nothing may have led until later, or it was committed as it was previewed before the first decision of a pass, which is
// when the recording begins.
func (h *recordedHistory) unfounded(n int) bool {
	m := h.moves[n]
	if h.hasGap(m.Revision, math.MaxInt64) {
		return true
	}
	return m.Cause.Type == api.CausePreview && !slices.ContainsFunc(h.moves[:n], func(before recordedMove) bool {
		ofPass := before.After != nil && before.Cause.Type != api.CausePreview
		return ofPass && before.Revision < m.Revision && !h.hasGap(before.Revision, m.Revision)
	})
}

// explainsItself checks that each of some random entries, explained as it was, has the very decision that was made.
func (w *world) explainsItself(p *process, h recordedHistory, count int) {
	w.t.Helper()
	explained := 0
	var gone []string
	for _, n := range w.random.Perm(len(h.moves)) {
		m := h.moves[n]
		if m.After == nil || m.Object.Kind != api.KindPlacement {
			continue
		}
		if explained++; explained > count {
			break
		}
		answer, err := p.ask(http.MethodGet, m.Object.URLPath()+"/explanation?at="+fmt.Sprint(m.Revision), "")
		if err != nil {
			w.t.Fatal(err)
		}
		if answer.status == http.StatusGone {
			if !h.unfounded(n) {
				gone = append(gone, fmt.Sprintf("%s at revision %d, because of %s: %s", m.Object.Key, m.Revision, m.Cause.Type, answer.body))
			}
			continue
		}
		var explanation api.Explanation
		if err := json.Unmarshal([]byte(answer.body), &explanation); err != nil || answer.status != http.StatusOK {
			w.t.Fatalf("explain %s at %d: %d %s", m.Object.Key, m.Revision, answer.status, answer.body)
		}
		var clusters []string
		for _, c := range explanation.Candidates {
			if c.Selected {
				clusters = append(clusters, c.Cluster)
			}
		}
		if !sameClusters(clusters, m.After.Clusters) {
			w.t.Errorf("%s was decided as %v at revision %d, and is explained as %v", m.Object.Key, m.After.Clusters, m.Revision, clusters)
		}
	}
	if len(gone) > 0 {
		w.t.Errorf("%d of %d entries can no longer be explained: %s", len(gone), explained, strings.Join(gone, "; "))
	}
}
