package fleet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Damage says that a stored object, or record, cannot be read back as it was
// written. It lasts until the damaged parts are written again or deleted. An
// object of which a sound version is in memory is shown as it was; of any other
// nothing is shown.
type Damage struct {
	Key api.Key
	// Spec and Status say what is the matter with each part; nil: nothing.
	Spec, Status error
	// Lost says that no sound version of the object is in memory.
	Lost bool

	// What is sound of a lost object: its spec, or its status without one.
	aside  *Entry
	status *store.Record
}

func (d *Damage) set(part store.Part, err error) {
	if part == store.Status {
		d.Status = err
	} else {
		d.Spec = err
	}
}

// Damaged returns the damage of an object or record, nil where there is none.
func (s *Snapshot) Damaged(key api.Key) *Damage { return s.damaged[key] }

// AllDamaged lists what is damaged, in the order of the keys.
func (s *Snapshot) AllDamaged() []*Damage {
	return slices.SortedFunc(maps.Values(s.damaged), func(a, b *Damage) int { return a.Key.Compare(b.Key) })
}

// SameDamage reports whether the same objects are damaged in both snapshots.
func (s *Snapshot) SameDamage(other *Snapshot) bool { return maps.Equal(s.damaged, other.damaged) }

// setDamage replaces the damage of a key; nil ends it.
func (b *builder) setDamage(key api.Key, d *Damage) {
	if !b.ownDamaged {
		b.damaged, b.ownDamaged = maps.Clone(b.damaged), true
		if b.damaged == nil {
			b.damaged = map[api.Key]*Damage{}
		}
	}
	if d == nil {
		delete(b.damaged, key)
	} else {
		b.damaged[key] = d
	}
}

// hurt notes that a part of an object cannot be read. known is the sound version
// that is in memory, nil where there is none.
func (b *builder) hurt(known *Entry, record store.Record, cause error) {
	d := Damage{Key: record.Key}
	if before := b.damaged[record.Key]; before != nil {
		d = *before
	}
	d.set(record.Part, cause)
	switch visible := b.known(record.Key); {
	case known != nil && !d.Lost:
		b.insert(known)
	case visible != nil:
		// Read in this same reading: its spec is sound, its status is not.
		d.Lost, d.aside = true, visible
		b.remove(visible)
	default:
		d.Lost = true
	}
	b.setDamage(record.Key, &d)
}

// heal takes over a sound record of an object that is damaged. It reports whether
// the object can be shown as far as this record goes, and the entry to go on from.
func (b *builder) heal(d *Damage, record store.Record) (base *Entry, show bool, err error) {
	next := *d
	next.set(record.Part, nil)
	if record.Part == store.Spec && record.Value == nil {
		next.Status = nil // the store deletes it, too
	}
	whole := next.Spec == nil && next.Status == nil
	if !d.Lost {
		if whole {
			b.setDamage(d.Key, nil)
		} else {
			b.setDamage(d.Key, &next)
		}
		return nil, true, nil
	}
	if record.Part == store.Status && next.Spec != nil {
		next.status = &record
		b.setDamage(d.Key, &next)
		return nil, false, nil //nolint:nilerr // the damage of the spec is noted
	}
	entry, err := b.next(next.aside, record)
	if err == nil && entry != nil && next.status != nil {
		entry, err = b.next(entry, *next.status)
	}
	if err != nil {
		return nil, false, err
	}
	if whole {
		b.setDamage(d.Key, nil)
		return entry, true, nil
	}
	next.aside, next.status = entry, nil
	b.setDamage(d.Key, &next)
	return nil, false, nil
}

// damageOf is why a record cannot be read; nil where it can, as far as the store
// knows.
func damageOf(record store.Record) error {
	if record.Damage != nil {
		return fmt.Errorf("%s: %w", record.Key, record.Damage)
	}
	return nil
}
