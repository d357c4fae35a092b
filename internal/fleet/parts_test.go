package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// newCluster stores a cluster, and returns its key and the revision of its spec.
func (b *bench) newCluster(name string) (api.Key, int64) {
	b.t.Helper()
	c := &api.Cluster{Metadata: api.Metadata{Name: name, Generation: 1}}
	value, err := b.codec.EncodeSpec(c)
	if err != nil {
		b.t.Fatal(err)
	}
	key := api.KeyOf(c)
	revision, err := b.store.Commit(b.ctx, store.Write{Key: key, Part: store.Spec, Value: value})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.fleet.WaitRevision(b.ctx, revision); err != nil {
		b.t.Fatal(err)
	}
	return key, revision
}

// observed sets the number of nodes of a cluster, and decided the cloud it is on.
func observed(key api.Key, revision, nodes int64) PartWrite {
	return PartWrite{key, revision, func(stored api.Object) {
		stored.(*api.Cluster).Status.TakeObserved(&api.ClusterStatus{Nodes: &api.ClusterNodes{Total: nodes}})
	}}
}

func decided(key api.Key, revision int64, cloud string) PartWrite {
	return PartWrite{key, revision, func(stored api.Object) {
		stored.(*api.Cluster).Status.TakeDecided(&api.ClusterStatus{Cloud: cloud})
	}}
}

// Two writers write their parts of many statuses concurrently. Neither overwrites the other's part.
func TestWritersOfOneStatusDoNotUndoEachOther(t *testing.T) {
	t.Parallel()
	b := start(t)
	const clusters, rounds = 20, 30
	keys, revisions := make([]api.Key, clusters), make([]int64, clusters)
	for i := range keys {
		keys[i], revisions[i] = b.newCluster(fmt.Sprintf("c%d", i))
	}
	var last [2]int64
	var writing sync.WaitGroup
	for at, part := range []func(i, round int) PartWrite{
		func(i, round int) PartWrite { return observed(keys[i], revisions[i], int64(round)) },
		func(i, round int) PartWrite { return decided(keys[i], revisions[i], fmt.Sprint("cloud", round)) },
	} {
		writing.Go(func() {
			for round := 1; round <= rounds; round++ {
				var writes []PartWrite
				for i := range keys {
					writes = append(writes, part(i, round))
				}
				revision, err := b.fleet.PutParts(b.ctx, writes, b.codec.EncodeStatus, b.store.Derive)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				last[at] = revision
			}
		})
	}
	writing.Wait()
	snapshot, err := b.fleet.WaitRevision(b.ctx, max(last[0], last[1]))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		s := snapshot.Get(key).Object.(*api.Cluster).Status
		if s.Cloud != fmt.Sprint("cloud", rounds) || s.Nodes == nil || s.Nodes.Total != rounds {
			t.Errorf("%s: cloud %q, nodes %+v", key, s.Cloud, s.Nodes)
		}
	}
}

// A deleted status is written again, for example after a user has replaced a damaged one.
func TestPartOfADeletedStatusIsWritten(t *testing.T) {
	t.Parallel()
	b := start(t)
	key, revision := b.newCluster("a")
	write := func(cloud string) int64 {
		revision, err := b.fleet.PutParts(b.ctx, []PartWrite{decided(key, revision, cloud)}, b.codec.EncodeStatus, b.store.Derive)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	if _, err := b.fleet.WaitRevision(b.ctx, write("paris")); err != nil {
		t.Fatal(err)
	}
	deleted, err := b.store.Derive(b.ctx, []store.StatusWrite{{Key: key, SpecRevision: revision}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.fleet.WaitRevision(b.ctx, deleted); err != nil {
		t.Fatal(err)
	}
	snapshot, err := b.fleet.WaitRevision(b.ctx, write("rome"))
	if err != nil {
		t.Fatal(err)
	}
	if got := snapshot.Get(key).Object.(*api.Cluster).Status.Cloud; got != "rome" {
		t.Errorf("cloud %q, want rome", got)
	}
}

// Parts that cannot be written are reported object by object, and the others are written.
func TestPartsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := start(t)
	sound, revision := b.newCluster("sound")
	changed, _ := b.newCluster("changed")
	refused, refusedAt := b.newCluster("refused")
	gone := api.Key{Kind: api.KindCluster, Name: "gone"}
	unknown := api.Key{Kind: "nothing", Name: "unknown"}
	encode := func(o api.Object) ([]byte, error) {
		if api.KeyOf(o) == refused {
			return nil, errors.New("refused")
		}
		return b.codec.EncodeStatus(o)
	}
	at, err := b.fleet.PutParts(b.ctx, []PartWrite{
		decided(sound, revision, "cloud"), decided(changed, 1, "cloud"), decided(refused, refusedAt, "cloud"),
		decided(gone, 5, "cloud"), decided(unknown, 5, "cloud"),
	}, encode, b.store.Derive)
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || len(conflict.Keys) != 2 || conflict.Of(store.Spec) == nil || len(conflict.Of(store.Spec).Keys) != 2 {
		t.Errorf("conflicts in %v, want those of the specs that changed and are gone", err)
	}
	var some *store.DeriveError
	if !errors.As(err, &some) || len(some.Failed) != 2 || some.Failed[refused] == nil || some.Failed[unknown] == nil {
		t.Errorf("error %v, want the two failures", err)
	}
	snapshot, err := b.fleet.WaitRevision(b.ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	if s := snapshot.Get(sound).Object.(*api.Cluster).Status; s.Cloud != "cloud" {
		t.Errorf("cloud %q of the valid write, want cloud", s.Cloud)
	}
	broken := errors.New("broken")
	if _, err := b.fleet.PutParts(b.ctx, []PartWrite{decided(sound, revision, "other")}, b.codec.EncodeStatus,
		func(context.Context, []store.StatusWrite) (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want the one of the store", err)
	}
}
