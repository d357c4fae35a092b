package store

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// unanswered are transactions with records of the history whose outcome is unknown, each by the key
// of its records. The same decision may be written again, and its record must not be there twice: a
// later transaction with one of their objects is made only if none of the earlier ones has
// happened.
type unanswered struct {
	mu   sync.Mutex
	term *Term // later terms begin when nothing of earlier ones can happen anymore
	// by are the transactions that may have written the status of an object. Each was made only if
	// those before it had not happened, so one has, or none.
	by map[api.Key][]earlier
	// made are the revisions of those that are known to have happened.
	made map[string]int64
}

// earlier is a write of a status that may have happened.
type earlier struct {
	transaction string
	record      []byte
}

// maxUnanswered is how many of them one transaction is compared with.
const maxUnanswered = 16

// add remembers the transaction that may have made the pending writes.
func (u *unanswered) add(term *Term, records string, c *chunk) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.term != term {
		u.term, u.by, u.made = term, map[api.Key][]earlier{}, map[string]int64{}
	}
	for _, i := range c.pending {
		w := &c.writes[i]
		u.by[w.Key] = append(u.by[w.Key], earlier{records, w.History})
	}
}

// of returns those that may have made some of the pending writes.
func (u *unanswered) of(term *Term, c *chunk) (records []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.term != term || len(u.by) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, i := range c.pending {
		for _, e := range u.by[c.writes[i].Key] {
			if !seen[e.transaction] {
				seen[e.transaction] = true
				records = append(records, e.transaction)
			}
		}
	}
	return records
}

// unknown returns those that are not known to have happened.
func (u *unanswered) unknown() map[string]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	unknown := map[string]bool{}
	for _, all := range u.by {
		for _, e := range all {
			if u.made[e.transaction] == 0 {
				unknown[e.transaction] = true
			}
		}
	}
	return unknown
}

// happened says that a transaction has happened.
func (u *unanswered) happened(records string, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.made != nil {
		u.made[records] = revision
	}
}

// errMadeBefore is the outcome of a write that does not know what an earlier one has written.
var errMadeBefore = fmt.Errorf("%w: an earlier write of the status, which was not answered, has happened; it is made again after that is seen", ErrUnavailable)

// leaveOut gives an outcome to the pending writes that follow one that has happened after all, and
// reports whether there are any: with the same record, that was this write; with another one, or
// none, it was made without knowing of that, and fails. The revision of the outcome is that from
// which readers see it.
func (u *unanswered) leaveOut(c *chunk) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.made) == 0 {
		return false
	}
	var rest []int
	for _, i := range c.pending {
		w := &c.writes[i]
		made := slices.IndexFunc(u.by[w.Key], func(e earlier) bool { return u.made[e.transaction] != 0 })
		if made < 0 {
			rest = append(rest, i)
			continue
		}
		e := u.by[w.Key][made]
		c.outcomes[i] = outcome{revision: u.made[e.transaction]}
		if w.History == nil || !bytes.Equal(w.History, e.record) {
			c.outcomes[i].err = errMadeBefore
		}
		delete(u.by, w.Key)
	}
	left := len(rest) < len(c.pending)
	c.pending = rest
	return left
}

// forget removes the objects of the pending writes: they have been made, so no earlier transaction
// can make them.
func (u *unanswered) forget(c *chunk) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.by) == 0 {
		return
	}
	for _, i := range c.pending {
		delete(u.by, c.writes[i].Key)
	}
	if len(u.by) == 0 {
		clear(u.made)
	}
}
