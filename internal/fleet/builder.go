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
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Change is the change of one object: Old is nil if it was created, New is nil if it was deleted.
type Change struct {
	Key      api.Key
	Old, New *Entry
	// Revision is that of the object's last change; 0 = unknown.
	Revision int64
}

// builder creates the next snapshot from a snapshot and records.
type builder struct {
	codec   Codec
	objects *btree.BTreeG[*Entry]
	system  *btree.BTreeG[store.Record]
	counts  map[api.Kind]int
	// order and first contain the touched objects and their previous state; first is nil if changes
	// are not needed.
	order []api.Key
	first map[api.Key]touched
	// own is an object that is not shared yet: its status is read into it, not into a copy.
	own *Entry
	// damaged is a copy that may be modified if ownDamaged is set.
	damaged    map[api.Key]*Damage
	ownDamaged bool
	// applied counts the records that were applied up to the snapshot.
	applied int64
}

// touched is an object before its first record, and the revision of its last one.
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
		applied: base.applied,
	}
}

// apply applies one record. If it returns an error, the object is unchanged.
func (b *builder) apply(record store.Record) error {
	b.applied++
	if _, ok := api.LookupKind(record.Key.Kind); !ok {
		return b.applySystem(record)
	}
	if err := damageOf(record); err != nil {
		return err
	}
	old := b.known(record.Key)
	var entry *Entry
	var healed, show bool
	err := recovery.Confine(record.Key.String(), func() (err error) {
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
		return err // what was read into an object of its own stands there already
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

// load applies one record of a complete load. Unchanged objects are taken from the previous
// snapshot instead of being decoded and decrypted again.
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
	if now := b.known(record.Key); now != known {
		b.own = now
	}
	defer func() { b.own = nil }()
	return b.apply(record)
}

// known returns the current state of an object, or nil.
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

// applySystem applies a record of a kind that is not an API object. A damaged record is kept
// without a value: it counts, but cannot be used.
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

// next returns the entry after a record: nil if the object is gone, old itself if the record
// changes nothing.
func (b *builder) next(old *Entry, record store.Record) (*Entry, error) {
	switch {
	case record.Part == store.Spec && record.Value == nil:
		return nil, nil
	case record.Part == store.Spec:
		return b.withSpec(old, record)
	case old == nil:
		// A status without an object, left over from a deletion.
		return nil, nil
	}
	entry := old
	if old != b.own {
		copied := *old
		copied.Object = old.Object.Copy()
		entry = &copied
	}
	status := reflect.ValueOf(entry.Object.StatusPart()).Elem()
	if record.Value == nil {
		status.SetZero()
	} else if err := b.codec.DecodeStatus(entry.Object, record.Value); err != nil {
		if old == b.own {
			status.SetZero()
		}
		return old, err
	}
	entry.StatusRevision, entry.statusBytes = record.ModRevision, sizeOf(record)
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

// sizeOf returns the size of a stored part, which is far below the limit of int32.
func sizeOf(record store.Record) int32 { return int32(min(len(record.Value), math.MaxInt32)) }

// stamp sets the revision of the object, which must not be shared yet.
func (e *Entry) stamp() *Entry {
	e.Object.Meta().ResourceVersion = strconv.FormatInt(e.Revision(), 10)
	return e
}

// specsFirst yields records in order, but within each revision the Spec parts first: a status may
// be written together with its object.
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

// snapshot finishes the builder: what the snapshot consists of is no longer modified.
func (b *builder) snapshot(revision int64) *Snapshot {
	return &Snapshot{revision: revision, objects: b.objects, system: b.system, counts: b.counts, damaged: b.damaged, applied: b.applied}
}

// changes returns the differences between the base and the snapshot, one for each object, in the
// order in which the objects were first touched. passed says that some objects were created and
// deleted again.
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

// Difference returns the changes between two snapshots in key order. before may be nil, which means
// empty.
func Difference(before, after *Snapshot) []Change {
	if before == after {
		return nil
	}
	if before == nil {
		before = emptySnapshot()
	}
	var changes []Change
	if before.objects.Len() == 0 { // as at the start, of millions
		changes = make([]Change, 0, after.objects.Len())
	}
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

// all yields the entries of a tree in key order.
func all(tree *btree.BTreeG[*Entry]) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) { tree.Ascend(yield) }
}
