package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// cell is what the model knows about one part.
type cell struct {
	value    string
	revision int64
}

// model is the store as maps.
type model struct {
	s        *Store
	ctx      context.Context
	parts    map[partKey]cell
	seen     map[partKey][]int64 // all revisions that a part has had
	revision int64
}

var modelKeys = []api.Key{
	{Kind: api.KindCluster, Name: "a"}, {Kind: api.KindMetric, Name: "a"}, {Kind: api.KindMetric, Namespace: "n", Name: "a"},
	{Kind: api.KindPlacement, Namespace: "n", Name: "a"}, {Kind: api.KindPlacement, Namespace: "n", Name: "b"},
	{Kind: api.KindPlacementScore, Namespace: "a", Name: "s"}, {Kind: api.KindPlacementScore, Namespace: "ab", Name: "s"},
}

// expectation draws a revision to compare with: correct, outdated or none.
func (m *model) expectation(t *rapid.T, part partKey) int64 {
	choices := append([]int64{Any, 0, m.parts[part].revision}, m.seen[part]...)
	return rapid.SampledFrom(choices).Draw(t, "expect")
}

func (m *model) commit(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "writes")
	var writes []Write
	used, checked := map[partKey]bool{}, map[partKey]bool{}
	for i := range n {
		part := partKey{rapid.SampledFrom(modelKeys).Draw(t, "key"), rapid.SampledFrom([]Part{Spec, Spec, Status}).Draw(t, "part")}
		if used[part] {
			continue
		}
		used[part] = true
		w := Write{Key: part.key, Part: part.part, Expect: m.expectation(t, part)}
		if w.Expect != Any && rapid.IntRange(0, 3).Draw(t, "check") == 0 {
			w.CheckOnly = true
			checked[part] = true
		} else if rapid.IntRange(0, 3).Draw(t, "delete") > 0 {
			w.Value = []byte(fmt.Sprint("c", m.revision, "-", i))
		}
		writes = append(writes, w)
	}
	if m.touchesDeleted(writes) {
		return // etcd rejects writing and deleting a key in one transaction
	}
	var want []api.Key
	for _, w := range writes {
		if w.Expect != Any && m.parts[partKey{w.Key, w.Part}].revision != w.Expect {
			want = append(want, w.Key)
		}
	}
	revision, err := m.s.Commit(m.ctx, writes...)
	var conflict *ConflictError
	if !slices.ContainsFunc(writes, func(w Write) bool { return !w.CheckOnly }) {
		if !errors.Is(err, ErrInvalid) {
			t.Fatalf("empty commit %+v: error %v, want ErrInvalid", writes, err)
		}
		return
	}
	if len(want) > 0 {
		if !errors.As(err, &conflict) || !slices.Equal(conflict.Keys, want) {
			t.Fatalf("commit %+v: %v, want conflicts on %v", writes, err, want)
		}
		return
	}
	if err != nil {
		t.Fatalf("commit %+v: %v", writes, err)
	}
	m.moved(t, revision)
	for _, w := range writes {
		if w.CheckOnly {
			continue
		}
		m.set(partKey{w.Key, w.Part}, w.Value, revision)
		if deletesCluster(w) {
			for part := range m.parts {
				if part.key.Kind == api.KindPlacementScore && part.key.Namespace == w.Key.Name {
					delete(m.parts, part)
				}
			}
		}
		if status := (partKey{w.Key, Status}); w.Part == Spec && w.Value == nil && (!used[status] || checked[status]) {
			m.set(status, nil, revision)
		}
	}
}

func deletesCluster(w Write) bool {
	return w.Key.Kind == api.KindCluster && w.Part == Spec && w.Value == nil && !w.CheckOnly
}

// touchesDeleted reports whether the writes put an object of a cluster that they delete.
func (m *model) touchesDeleted(writes []Write) bool {
	return slices.ContainsFunc(writes, deletesCluster) && slices.ContainsFunc(writes, func(w Write) bool {
		return w.Key.Kind == api.KindPlacementScore && w.Value != nil
	})
}

func (m *model) derive(t *rapid.T) {
	keys := rapid.SliceOfDistinct(rapid.SampledFrom(modelKeys), func(k api.Key) api.Key { return k }).Draw(t, "keys")
	var writes []StatusWrite
	for i, key := range keys {
		if r := m.expectation(t, partKey{key, Spec}); r > 0 {
			writes = append(writes, StatusWrite{Key: key, Value: []byte(fmt.Sprint("d", m.revision, "-", i)), SpecRevision: r})
		}
	}
	var want []api.Key
	for _, w := range writes {
		if m.parts[partKey{w.Key, Spec}].revision != w.SpecRevision {
			want = append(want, w.Key)
		}
	}
	revision, err := m.s.Derive(m.ctx, writes)
	var conflict *ConflictError
	switch {
	case len(want) == 0 && err != nil:
		t.Fatalf("derive %+v: %v", writes, err)
	case len(want) > 0 && (!errors.As(err, &conflict) || !slices.Equal(conflict.Keys, want)):
		t.Fatalf("derive %+v: %v, want conflicts on %v", writes, err, want)
	case len(want) == len(writes):
		return
	}
	m.moved(t, revision)
	for _, w := range writes {
		if !slices.Contains(want, w.Key) {
			m.set(partKey{w.Key, Status}, w.Value, revision)
		}
	}
}

func (m *model) moved(t *rapid.T, revision int64) {
	if revision < m.revision {
		t.Fatalf("revision %d after %d", revision, m.revision)
	}
	m.revision = revision
}

func (m *model) set(part partKey, value []byte, revision int64) {
	if value == nil {
		delete(m.parts, part)
		return
	}
	m.parts[part] = cell{string(value), revision}
	m.seen[part] = append(m.seen[part], revision)
}

// check compares everything with the model, through each way to read.
func (m *model) check(t *rapid.T) {
	count := 0
	if _, err := m.s.Load(m.ctx, 0, func(r Record) error {
		count++
		if want := m.parts[partKey{r.Key, r.Part}]; want.value != string(r.Value) || want.revision != r.ModRevision {
			t.Fatalf("%s of %s is %q at revision %d, want %+v", r.Part, r.Key, r.Value, r.ModRevision, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if count != len(m.parts) {
		t.Fatalf("%d parts, want %d", count, len(m.parts))
	}
	for _, key := range modelKeys {
		spec, status, err := m.s.Read(m.ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		for part, r := range map[Part]*Record{Spec: spec, Status: status} {
			want, there := m.parts[partKey{key, part}]
			if there != (r != nil) || there && (string(r.Value) != want.value || r.ModRevision != want.revision) {
				t.Fatalf("%s of %s is %v, want %+v", part, key, r, want)
			}
		}
	}
}

func TestStoreBehavesLikeAMap(t *testing.T) {
	t.Parallel()
	s := open(t)
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
		defer cancel()
		for _, key := range modelKeys {
			if _, err := s.Commit(ctx, Write{Key: key, Expect: Any}); err != nil {
				t.Fatal(err)
			}
		}
		m := &model{s: s, ctx: ctx, parts: map[partKey]cell{}, seen: map[partKey][]int64{}}
		t.Repeat(map[string]func(*rapid.T){"commit": m.commit, "derive": m.derive, "": m.check})
	})
}
