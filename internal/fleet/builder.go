package fleet

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"strconv"

	iradix "github.com/hashicorp/go-immutable-radix/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Change is what happened to one object: Old is nil when it was created, New is
// nil when it was deleted.
type Change struct {
	Key      api.Key
	Old, New *Entry
}

// builder makes the next snapshot from a snapshot and records.
type builder struct {
	codec   Codec
	objects *iradix.Txn[*Entry]
	system  *iradix.Txn[store.Record]
	counts  map[api.Kind]int
	// order and first say which objects were touched, and what they were before;
	// first is nil where nobody wants to know.
	order []api.Key
	first map[api.Key]*Entry
	// damaged is a copy of its own once ownDamaged says so.
	damaged    map[api.Key]*Damage
	ownDamaged bool
}

func newBuilder(base *Snapshot, codec Codec) *builder {
	return &builder{
		codec:   codec,
		objects: base.objects.Txn(),
		system:  base.system.Txn(),
		counts:  maps.Clone(base.counts),
		first:   map[api.Key]*Entry{},
		damaged: base.damaged,
	}
}

// apply takes over one record. Where it returns an error, the object stays as it
// was.
func (b *builder) apply(record store.Record) error {
	info, ok := api.LookupKind(record.Key.Kind)
	if !ok {
		return b.applySystem(record)
	}
	if err := damageOf(record); err != nil {
		return err
	}
	path := radixKey(record.Key)
	old, _ := b.objects.Get(path)
	var entry *Entry
	var healed, show bool
	err := fault.Confine(record.Key.String(), func() (err error) {
		if d := b.damaged[record.Key]; d != nil {
			healed = d.Lost
			if entry, show, err = b.heal(d, record); err != nil || healed && !show {
				return err
			}
		}
		if !healed {
			entry, err = b.next(old, record)
		}
		return err
	})
	if err != nil || healed && !show || entry == old {
		return err
	}
	if _, touched := b.first[record.Key]; !touched && b.first != nil {
		b.first[record.Key] = old
		b.order = append(b.order, record.Key)
	}
	if entry == nil {
		b.objects.Delete(path)
		b.counts[info.Kind]--
		return nil
	}
	b.insert(path, info.Kind, entry)
	return nil
}

// load takes over one record of a complete reading. What is the same as before
// is taken from there instead of being decoded again, secrets and all.
func (b *builder) load(before *Snapshot, record store.Record) error {
	path := radixKey(record.Key)
	known, _ := before.objects.Get(path)
	switch {
	case known == nil, record.Damage != nil:
	case record.Part == store.Spec && known.SpecRevision == record.ModRevision && known.StatusRevision == 0:
		b.insert(path, record.Key.Kind, known)
		return nil
	case record.Part == store.Status && known.StatusRevision == record.ModRevision:
		if now, _ := b.objects.Get(path); now != nil && now.SpecRevision == known.SpecRevision {
			b.insert(path, record.Key.Kind, known)
			return nil
		}
	}
	return b.apply(record)
}

func (b *builder) insert(path []byte, kind api.Kind, entry *Entry) {
	if _, replaced := b.objects.Insert(path, entry); !replaced {
		b.counts[kind]++
	}
}

// applySystem takes over a record of a kind that is no object. One that is
// damaged is there without a value: it counts, and is good for nothing.
func (b *builder) applySystem(record store.Record) error {
	if b.damaged[record.Key] != nil {
		b.setDamage(record.Key, nil)
	}
	switch {
	case record.Part != store.Spec:
	case record.Value == nil:
		b.system.Delete(radixKey(record.Key))
	default:
		b.system.Insert(radixKey(record.Key), record)
	}
	return damageOf(record)
}

// next is the entry after a record: nil when the object is gone, old itself when
// the record changes nothing.
func (b *builder) next(old *Entry, record store.Record) (*Entry, error) {
	switch {
	case record.Part == store.Spec && record.Value == nil:
		return nil, nil
	case record.Part == store.Spec:
		return b.withSpec(old, record)
	case old == nil:
		// A status without an object: what remains of a deletion.
		return nil, nil
	}
	object := old.Object.Copy()
	entry := &Entry{
		Object: object, SpecRevision: old.SpecRevision, StatusRevision: record.ModRevision,
		specBytes: old.specBytes, statusBytes: len(record.Value),
	}
	if record.Value == nil {
		reflect.ValueOf(object.StatusPart()).Elem().SetZero()
	} else if err := b.codec.DecodeStatus(object, record.Value); err != nil {
		return old, err
	}
	return entry.stamp(), nil
}

func (b *builder) withSpec(old *Entry, record store.Record) (*Entry, error) {
	object, err := b.codec.DecodeSpec(record.Key.Kind, record.Value)
	if err != nil {
		return old, fmt.Errorf("%s at revision %d: %w", record.Key, record.ModRevision, err)
	}
	if key := api.KeyOf(object); key != record.Key {
		return old, fmt.Errorf("%s at revision %d: the stored value is that of %s", record.Key, record.ModRevision, key)
	}
	entry := &Entry{Object: object, SpecRevision: record.ModRevision, specBytes: len(record.Value)}
	if old != nil {
		entry.StatusRevision, entry.statusBytes = old.StatusRevision, old.statusBytes
		reflect.ValueOf(object.StatusPart()).Elem().Set(reflect.ValueOf(old.Object.StatusPart()).Elem())
	}
	return entry.stamp(), nil
}

// stamp writes the revision into the object, which is not shared yet.
func (e *Entry) stamp() *Entry {
	e.Object.Meta().ResourceVersion = strconv.FormatInt(e.Revision(), 10)
	return e
}

// specsFirst yields records in their order, but within each revision the Spec
// parts first: a status may be written together with the object it belongs to.
func specsFirst(records []store.Record) iter.Seq[store.Record] {
	return func(yield func(store.Record) bool) {
		for begin := 0; begin < len(records); {
			end := begin
			for end < len(records) && records[end].ModRevision == records[begin].ModRevision {
				end++
			}
			for _, part := range []store.Part{store.Spec, store.Status} {
				for _, record := range records[begin:end] {
					if record.Part == part && !yield(record) {
						return
					}
				}
			}
			begin = end
		}
	}
}

// snapshot ends the building.
func (b *builder) snapshot(revision int64) *Snapshot {
	return &Snapshot{revision: revision, objects: b.objects.CommitOnly(), system: b.system.CommitOnly(), counts: b.counts, damaged: b.damaged}
}

// changes are the differences between the base and the snapshot, one for each
// object, in the order in which the objects were first touched.
func (b *builder) changes(after *Snapshot) []Change {
	var changes []Change
	for _, key := range b.order {
		change := Change{Key: key, Old: b.first[key], New: after.Get(key)}
		if change.Old != change.New {
			changes = append(changes, change)
		}
	}
	return changes
}

// Difference lists what changed between two snapshots, in the order of the keys. The
// one before may be nil, which is empty.
func Difference(before, after *Snapshot) []Change {
	if before == after {
		return nil
	}
	if before == nil {
		before = emptySnapshot()
	}
	var changes []Change
	x, y := before.objects.Root().Iterator(), after.objects.Root().Iterator()
	kx, old, okX := x.Next()
	ky, now, okY := y.Next()
	for okX || okY {
		order := compareKeys(kx, okX, ky, okY)
		switch {
		case order < 0:
			changes = append(changes, Change{Key: api.KeyOf(old.Object), Old: old})
		case order > 0:
			changes = append(changes, Change{Key: api.KeyOf(now.Object), New: now})
		case old.SpecRevision != now.SpecRevision || old.StatusRevision != now.StatusRevision:
			changes = append(changes, Change{Key: api.KeyOf(now.Object), Old: old, New: now})
		}
		if order <= 0 {
			kx, old, okX = x.Next()
		}
		if order >= 0 {
			ky, now, okY = y.Next()
		}
	}
	return changes
}

// compareKeys orders two iterators; one that has ended is behind all others.
func compareKeys(x []byte, okX bool, y []byte, okY bool) int {
	switch {
	case !okX:
		return 1
	case !okY:
		return -1
	}
	return bytes.Compare(x, y)
}
