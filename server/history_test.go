package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// history returns the entries of a server, the oldest first, and the gaps.
func (s *runningServer) history(options client.HistoryOptions) (entries []api.HistoryEntry, gaps []api.HistoryGap) {
	s.t.Helper()
	err := s.repeated(func() error {
		entries, gaps = nil, nil
		for page, err := range s.client.History(context.Background(), options) {
			if err != nil {
				return err
			}
			entries, gaps = append(entries, page.Items...), append(gaps, page.Gaps...)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Reverse(entries)
	return entries, gaps
}

// tells waits until the history of a server has every decision of a placement, and checks that each of
// them follows the one before.
func (s *runningServer) tells(key api.Key) (entries []api.HistoryEntry) {
	s.t.Helper()
	want := get[*api.Placement](s, key).Status
	eventually.True(s.t, fmt.Sprintf("the history has the %d decisions of %s", want.DecisionRevision, key), func() bool {
		entries, _ = s.history(client.HistoryOptions{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Limit: 2})
		return len(entries) >= int(want.DecisionRevision)
	})
	if len(entries) != int(want.DecisionRevision) {
		s.t.Fatalf("%d entries of %d decisions", len(entries), want.DecisionRevision)
	}
	var before *api.Where
	for _, e := range entries {
		if !reflect.DeepEqual(e.Before, before) || e.Cause == nil {
			s.t.Errorf("revision %d: %+v follows %+v, because of %+v", e.Revision, e.Before, before, e.Cause)
		}
		before = e.After
	}
	if last := entries[len(entries)-1]; !slices.Equal(before.Clusters, want.Clusters) || !last.Time.Equal(*want.ScheduledAt) {
		s.t.Errorf("the last entry is %+v of %s, the placement is on %v since %s", before, last.Time, want.Clusters, want.ScheduledAt)
	}
	return entries
}

// TestHistoryHasEveryDecisionOnce moves a placement before and after a start, and while no server ran
// nothing was decided.
func TestHistoryHasEveryDecisionOnce(t *testing.T) {
	c := testConfig(t.TempDir())
	key := placementKey("shop", "web")
	s := start(t, c)
	fillFleet(s, 10, 90)
	for round := range 3 {
		for _, better := range []string{"berlin", "paris", "berlin"} {
			decide(t, s, s, better)
		}
		entries := s.tells(key)
		last := entries[len(entries)-1]
		if want := []api.Move{{From: "paris", To: "berlin"}}; !slices.Equal(last.Moved, want) || last.Cause.Type != api.CauseMetric {
			t.Errorf("round %d: moved %+v because of %+v, want %+v because of a metric", round, last.Moved, last.Cause, want)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		s = start(t, c)
		s.tells(key)
	}
	if _, gaps := s.history(client.HistoryOptions{}); gaps != nil {
		t.Errorf("gaps %+v, want none", gaps)
	}
	if err := s.client.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the history has the deletion", func() bool {
		entries, _ := s.history(client.HistoryOptions{Name: "web", Cluster: "berlin"})
		last := entries[len(entries)-1]
		return last.After == nil && slices.Equal(last.Moved, []api.Move{{From: "berlin"}}) && last.Cause == nil
	})
}

// TestEveryServerHasTheSameHistory moves a placement through servers on one store.
func TestEveryServerHasTheSameHistory(t *testing.T) {
	t.Parallel()
	servers, _ := several(t, 3)
	servers[0].leads()
	fillFleet(servers[0], 10, 90)
	for n, better := range []string{"berlin", "paris", "berlin", "paris"} {
		decide(t, servers[n%3], servers[(n+1)%3], better)
	}
	first := servers[0].tells(placementKey("shop", "web"))
	for n, s := range servers[1:] {
		if entries := s.tells(placementKey("shop", "web")); !reflect.DeepEqual(entries, first) {
			t.Errorf("server %d has\n%+v\nthe first one\n%+v", n+1, entries, first)
		}
	}
}

// TestWithoutADirectoryThereIsNoHistory asks a server that keeps none.
func TestWithoutADirectoryThereIsNoHistory(t *testing.T) {
	c := testConfig(t.TempDir())
	c.HistoryRetention = 0
	s := start(t, c)
	for _, err := range s.client.History(t.Context(), client.HistoryOptions{}) {
		if client.StatusOf(err) != 404 {
			t.Errorf("error %v, want a 404", err)
		}
	}
}

// TestWhatAServerMissedIsTakenFromAnother stops a server until the store has compacted what it missed.
func TestWhatAServerMissedIsTakenFromAnother(t *testing.T) {
	t.Parallel()
	var c config
	servers, etcd := several(t, 2, func(own *config) { c = *own })
	servers[0].leads()
	fillFleet(servers[0], 10, 90)
	key := placementKey("shop", "web")
	servers[1].tells(key)
	if err := servers[1].stop(); err != nil {
		t.Fatal(err)
	}
	for _, better := range []string{"berlin", "paris", "berlin"} {
		decide(t, servers[0], servers[0], better)
	}
	want := servers[0].tells(key)
	revision := put(servers[0], placement("shop", "other")).Metadata.ResourceVersion
	at, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Compact(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	c.Name = "server-1"
	for name, dir := range map[string]string{"with what it had": servers[1].historyDir, "with nothing": t.TempDir()} {
		c.HistoryDir = dir
		again := start(t, c)
		if entries := again.tells(key); !reflect.DeepEqual(entries, want) {
			t.Errorf("%s: it has\n%+v\nwant\n%+v", name, entries, want)
		}
		if _, gaps := again.history(client.HistoryOptions{}); gaps != nil {
			t.Errorf("%s: gaps %+v", name, gaps)
		}
		if err := again.stop(); err != nil {
			t.Error(err)
		}
	}
}
