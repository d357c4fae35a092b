package fleet

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"strconv"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Change is what happened to one object: Old is nil when it was created, New is
// nil when it was deleted.
type Change struct {
	Key      api.Key
	Old, New *Entry
	// Revision is that of the last of what happened; 0 = it is not known.
	Revision int64
}

// builder makes the next snapshot from a snapshot and records.
type builder struct {
	codec   Codec
	objects *btree.BTreeG[*Entry]
	system  *btree.BTreeG[store.Record]
	counts  map[api.Kind]int
	// order and first say which objects were touched, and what they were before;
	// first is nil where nobody wants to know.
	order []api.Key
	first map[api.Key]touched
	// damaged is a copy of its own once ownDamaged says so.
	damaged    map[api.Key]*Damage
	ownDamaged bool
}

// touched is an object before the first record about it, and the revision of the last.
type touched struct {
	before   *Entry
	revision int64
}

func newBuilder(base *Snapshot, codec Codec) *builder {
	return &builder{
		codec:   codec,
		objects: base.objects.Clone(),
		system:  base.system.Clone(),
		counts:  maps.Clone(base.counts),
		first:   map[api.Key]touched{},
		damaged: base.damaged,
	}
}

// apply takes over one record. Where it returns an error, the object stays as it
// was.
func (b *builder) apply(record store.Record) error {
	if _, ok := api.LookupKind(record.Key.Kind); !ok {
		return b.applySystem(record)
	}
	if err := damageOf(record); err != nil {
		return err
	}
	old := b.known(record.Key)
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
	if b.first != nil {
		t, again := b.first[record.Key]
		if !again {
			t.before = old
			b.order = append(b.order, record.Key)
		}
		t.revision = record.ModRevision
		b.first[record.Key] = t
	}
	if entry == nil {
		b.remove(old)
		return nil
	}
	b.insert(entry)
	return nil
}

// load takes over one record of a complete reading. What is the same as before
// is taken from there instead of being decoded again, secrets and all.
func (b *builder) load(before *Snapshot, record store.Record) error {
	known := before.Get(record.Key)
	switch {
	case known == nil, record.Damage != nil:
	case record.Part == store.Spec && known.SpecRevision == record.ModRevision && known.StatusRevision == 0:
		b.insert(known)
		return nil
	case record.Part == store.Status && known.StatusRevision == record.ModRevision:
		if now := b.known(record.Key); now != nil && now.SpecRevision == known.SpecRevision {
			b.insert(known)
			return nil
		}
	}
	return b.apply(record)
}

// known is an object as it is so far, nil where there is none.
func (b *builder) known(key api.Key) *Entry {
	entry, _ := b.objects.Get(&Entry{key: key})
	return entry
}

func (b *builder) insert(entry *Entry) {
	if _, replaced := b.objects.ReplaceOrInsert(entry); !replaced {
		b.counts[entry.key.Kind]++
	}
}

func (b *builder) remove(entry *Entry) {
	b.objects.Delete(entry)
	b.counts[entry.key.Kind]--
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
		b.system.Delete(record)
	default:
		b.system.ReplaceOrInsert(record)
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
		key: old.key, Object: object, SpecRevision: old.SpecRevision, StatusRevision: record.ModRevision,
		specBytes: old.specBytes, statusBytes: sizeOf(record),
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
	key := api.KeyOf(object) // shares the memory of the object
	if key != record.Key {
		return old, fmt.Errorf("%s at revision %d: the stored value is that of %s", record.Key, record.ModRevision, key)
	}
	entry := &Entry{key: key, Object: object, SpecRevision: record.ModRevision, specBytes: sizeOf(record)}
	if old != nil {
		entry.StatusRevision, entry.statusBytes = old.StatusRevision, old.statusBytes
		reflect.ValueOf(object.StatusPart()).Elem().Set(reflect.ValueOf(old.Object.StatusPart()).Elem())
	}
	return entry.stamp(), nil
}

// sizeOf is how large a part is where it is stored: far below what an int32 holds.
func sizeOf(record store.Record) int32 { return int32(min(len(record.Value), math.MaxInt32)) }

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

// snapshot ends the building: nothing changes what it is made of any more.
func (b *builder) snapshot(revision int64) *Snapshot {
	return &Snapshot{revision: revision, objects: b.objects, system: b.system, counts: b.counts, damaged: b.damaged}
}

// changes are the differences between the base and the snapshot, one for each
// object, in the order in which the objects were first touched. passed says that there
// are objects among those touched that are as they were: they came and went.
func (b *builder) changes(after *Snapshot) (changes []Change, passed bool) {
	for _, key := range b.order {
		t := b.first[key]
		change := Change{Key: key, Old: t.before, New: after.Get(key), Revision: t.revision}
		if change.Old == change.New {
			passed = true
			continue
		}
		changes = append(changes, change)
	}
	return changes, passed
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
	next, stop := iter.Pull(all(before.objects))
	defer stop()
	old, more := next()
	for now := range all(after.objects) {
		for ; more && old.key.Compare(now.key) < 0; old, more = next() {
			changes = append(changes, Change{Key: old.key, Old: old})
		}
		switch {
		case !more || old.key != now.key:
			changes = append(changes, Change{Key: now.key, New: now})
			continue
		case old.SpecRevision != now.SpecRevision || old.StatusRevision != now.StatusRevision:
			changes = append(changes, Change{Key: now.key, Old: old, New: now})
		}
		old, more = next()
	}
	for ; more; old, more = next() {
		changes = append(changes, Change{Key: old.key, Old: old})
	}
	return changes
}

// all yields the entries of a tree in the order of their keys.
func all(tree *btree.BTreeG[*Entry]) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) { tree.Ascend(yield) }
}
