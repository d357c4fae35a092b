package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Damage says that a stored object or record cannot be read as it was written. It lasts until the
// damaged parts are rewritten or deleted. If an intact version of the object is in memory, that is
// shown; otherwise the object is not shown.
type Damage struct {
	Key api.Key
	// Spec and Status describe the damage of each part; nil = intact.
	Spec, Status error
	// Lost says that no intact version of the object is in memory.
	Lost bool

	// The intact part of a lost object: its spec, or its status without a spec.
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

// Damaged returns the damage of an object or record, or nil.
func (s *Snapshot) Damaged(key api.Key) *Damage { return s.damaged[key] }

// AllDamaged returns all damage in key order.
func (s *Snapshot) AllDamaged() []*Damage {
	return slices.SortedFunc(maps.Values(s.damaged), func(a, b *Damage) int { return a.Key.Compare(b.Key) })
}

// SameDamage reports whether the same objects are damaged in both snapshots.
func (s *Snapshot) SameDamage(other *Snapshot) bool { return maps.Equal(s.damaged, other.damaged) }

// setDamage sets the damage of a key; nil removes it.
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

// hurt records that a part of an object cannot be read. known is the intact version in memory, or
// nil.
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
		// The spec was read in the same load and is intact, the status is not.
		d.Lost, d.aside = true, visible
		b.remove(visible)
	default:
		d.Lost = true
	}
	b.setDamage(record.Key, &d)
}

// heal applies an intact record of a damaged object. It reports whether the object can be shown
// with this record, and returns the entry to continue with.
func (b *builder) heal(d *Damage, record store.Record) (base *Entry, show bool, err error) {
	next := *d
	next.set(record.Part, nil)
	if record.Part == store.Spec && record.Value == nil {
		next.Status = nil // the store deletes it too
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
		record.Value = bytes.Clone(record.Value) // a load reuses its memory
		next.status = &record
		b.setDamage(d.Key, &next)
		return nil, false, nil //nolint:nilerr // the damage of the spec is recorded
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

// damageOf returns why a record cannot be read, or nil if the store found no damage.
func damageOf(record store.Record) error {
	if record.Damage != nil {
		return fmt.Errorf("%s: %w", record.Key, record.Damage)
	}
	return nil
}
