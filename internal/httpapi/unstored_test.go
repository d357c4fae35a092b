package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// faultyServer starts a server on which work on an object can be made to panic.
func faultyServer(t *testing.T) (s *testServer, work func(kind api.Kind, path string, panics bool)) {
	recorder := recovery.New(nil)
	s = startServer(t, func(o *Options) { o.Faults = recorder })
	return s, func(kind api.Kind, path string, panics bool) {
		_ = recorder.Component("health").Do(fmt.Sprintf("%s %q", kind, path), func() error {
			if panics {
				panic("over poison")
			}
			return nil
		})
	}
}

func isFaulted(o anyObject) bool {
	conditions, _ := o.Status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == api.ConditionFaulted {
			return true
		}
	}
	return false
}

// A panic is written to no store, and yet those who watch are told of it, as they are
// of its end, and those who have lost the connection meanwhile, too.
func TestWatchTellsOfPanics(t *testing.T) {
	s, work := faultyServer(t)
	s.mustPut("/v1/clusters/good", `{"spec":{}}`)
	version := decodeAs[api.Cluster](t, s.mustPut("/v1/clusters/poison", `{"spec":{}}`)).Metadata.ResourceVersion
	watch := s.watch("/v1/watch?kinds=cluster&resource_version=" + version).started()
	work(api.KindCluster, "good", false)
	work(api.KindCluster, "poison", true)
	told := watch.expect("put poison")[0]
	if !isFaulted(told.data.Object) || told.id != version {
		t.Errorf("event with ID %s, want %s: %+v", told.id, version, told.data.Object)
	}
	// After reconnecting, a watcher may receive it twice.
	if again := s.watch("/v1/watch", "Last-Event-ID", version).expect("put poison")[0]; !isFaulted(again.data.Object) {
		t.Errorf("event after resuming: got %+v", again.data.Object)
	}
	work(api.KindCluster, "poison", true) // nothing has changed
	work(api.KindCluster, "poison", false)
	if ended := watch.expect("put poison")[0]; isFaulted(ended.data.Object) {
		t.Errorf("event after the end of the fault: got %+v", ended.data.Object)
	}
	s.mustPut("/v1/clusters/good", `{"spec":{"region":"eu"}}`)
	later := watch.expect("put good")[0]
	s.mustPut("/v1/clusters/last", `{"spec":{}}`)
	s.watch("/v1/watch?kinds=cluster", "Last-Event-ID", later.id).expect("put last")
}

// Who may not see an object is not told of its panics.
func TestWatchTellsOfPanicsOnlyWhoMaySee(t *testing.T) {
	s, work := faultyServer(t)
	s.mustPut("/v1/namespaces/bank/placements/hidden?wait=0s", `{"spec":{}}`)
	version := decodeAs[api.Placement](t, s.mustPut("/v1/namespaces/shop/placements/web?wait=0s", `{"spec":{}}`)).Metadata.ResourceVersion
	s.token = s.addToken(auth.RoleViewer, "shop")
	watch := s.watch("/v1/watch?kinds=placement&resource_version=" + version).started()
	work(api.KindPlacement, "bank/hidden", true)
	work(api.KindPlacement, "shop/web", true)
	watch.expect("put shop/web")
}

// A request that waits for a newer version is answered when the object's displayed status changes, whichever part of
// the server causes it.
func TestPollIsAnsweredWhenNothingWasWritten(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	version := decodeAs[api.Placement](t, s.mustPut(path, `{"spec":{}}`)).Metadata.ResourceVersion
	answered := make(chan answer, 1)
	go func() {
		a, err := s.try(context.Background(), http.MethodGet, path+"?wait=60s&resource_version="+version, "")
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	key := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	log := s.watches.events
	eventually.True(t, "the request is waiting", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return len(log.polls[key]) == 1
	})
	s.decisions.unstored.Add(key)
	if a := <-answered; a.StatusCode != 200 {
		t.Errorf("got %d %s, want 200", a.StatusCode, a.body)
	}
	eventually.True(t, "no request is waiting", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return len(log.polls) == 0
	})
}

// Unstored changes since the last publication are kept, at most one for each object.
func TestEventLogKeepsWhatIsUnstored(t *testing.T) {
	s := startServer(t)
	var keys []api.Key
	for _, name := range []string{"a", "b", "c"} {
		s.mustPut("/v1/clusters/"+name, `{"spec":{}}`)
		keys = append(keys, api.Key{Kind: api.KindCluster, Name: name})
	}
	at := s.fleet.Snapshot()
	log := newEventLog(3)
	log.start(at.Revision(), at)
	log.append(fleet.Batch{Revision: at.Revision() + 1, Snapshot: at})
	slow := log.newest()
	for i := range 100 {
		log.appendUnstored([]api.Key{keys[i%2]}, at.Revision())
	}
	log.appendUnstored([]api.Key{keys[2], {Kind: api.KindCluster, Name: "gone"}}, at.Revision())
	read := func(from *event) map[string]bool {
		names := map[string]bool{}
		for e := from.next; e != nil; e = e.next {
			for _, change := range e.changes {
				names[change.Key.Name] = true
			}
		}
		return names
	}
	from, known := log.after(at.Revision() + 1)
	if !known || len(read(from)) != 3 || len(read(slow)) != 3 {
		t.Errorf("known %t; the resumed watch reads %v, the slow one %v", known, read(from), read(slow))
	}
	if log.length > 2*log.keep || log.changes > 2*log.keep+len(keys) {
		t.Errorf("%d events with %d changes are stored", log.length, log.changes)
	}
	// They are dropped together with the publication that they follow.
	for i := range int64(2) {
		log.append(fleet.Batch{Revision: at.Revision() + 2 + i, Snapshot: at, Changes: make([]fleet.Change, keepChanges)})
	}
	if _, known := log.after(at.Revision() + 1); known {
		t.Error("the log claims to know what followed the first revision, but has forgotten a part of it")
	}
}

// The log may be behind the reporter of an unstored change. A watcher that resumes from the change's revision still
// receives it.
func TestEventLogPutsWhatIsUnstoredAfterItsRevision(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/a", `{"spec":{}}`)
	at := s.fleet.Snapshot()
	log := newEventLog(10)
	log.start(at.Revision(), at)
	log.appendUnstored([]api.Key{{Kind: api.KindCluster, Name: "a"}}, at.Revision()+2)
	for i := range int64(2) {
		if log.last.unstored {
			t.Fatalf("the event was added at revision %d already", log.last.revision)
		}
		log.append(fleet.Batch{Revision: at.Revision() + 1 + i, Snapshot: at})
	}
	if from, known := log.after(at.Revision() + 2); !known || from.next == nil || !from.next.unstored {
		t.Errorf("known %t, next event %+v", known, from.next)
	}
}
