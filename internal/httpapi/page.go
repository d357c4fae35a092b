package httpapi

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// page is one page of a list from memory. It is written while it is read, so it takes the
// memory of one piece, however many objects it has.
type page struct {
	objects *objects
	ctx     context.Context // of the request that it answers
	query   *query
	fleet   *listedFleet
	limit   int
	fields  projection
}

// pageBytes is how large a piece of a page is, but for what is left of an object.
const pageBytes = 32 << 10

// WriteJSON implements operation.Streamed. It writes an api.List.
func (p *page) WriteJSON(w io.Writer) error {
	text := operation.BorrowBuffer()
	defer operation.GiveBack(text)
	text.WriteString(`{"items":[`)
	n, read, next, last := 0, 0, "", api.Key{}
	for entry := range p.entries() {
		shown := p.objects.selected(p.query, entry.Object)
		if shown != nil && n == p.limit || read == maxRounds*p.limit {
			next = store.PageAfter(last)
			break
		}
		read, last = read+1, api.KeyOf(entry.Object)
		if shown == nil {
			continue
		}
		if n > 0 {
			text.WriteByte(',')
		}
		n++
		if err := p.fields.write(text, shown); err != nil {
			return err
		}
		if text.Len() >= pageBytes {
			p.send(w, text.Bytes())
			text.Reset()
		}
	}
	end := api.List[api.Object]{
		ResourceVersion: strconv.FormatInt(p.query.Revision, 10), Damaged: p.objects.damagedIn(p.query, p.fleet.Snapshot),
	}
	if next != "" {
		p.query.After = next
		p.objects.listed.keep(p.fleet)
		end.Continue = p.query.String()
	}
	rest, err := jsonform.Marshal(end)
	if err != nil {
		return err
	}
	// What follows on the objects is what follows on none.
	text.WriteByte(']')
	text.Write(bytes.TrimPrefix(rest, []byte(`{"items":null`)))
	text.WriteByte('\n')
	p.send(w, text.Bytes())
	return nil
}

// send writes a piece. Where nobody takes it, or who takes it may not see any more what
// follows, the answer breaks off.
func (p *page) send(w io.Writer, text []byte) {
	_, err := w.Write(text)
	if err != nil || p.objects.sessions.Check(p.ctx) != nil {
		breakOff()
	}
}

// entries are those that follow in the list, whether they are selected or not.
func (p *page) entries() iter.Seq[*fleet.Entry] {
	return func(yield func(*fleet.Entry) bool) {
		for entry := range p.fleet.after(p.query) {
			if !p.objects.belongs(p.query, entry.Object) || p.fleet.Damaged(api.KeyOf(entry.Object)) != nil {
				continue
			}
			if !yield(entry) {
				return
			}
		}
	}
}

// lastContact is a snapshot of the fleet that pages of lists show.
type listedFleet struct {
	*fleet.Snapshot

	mu         sync.Mutex
	namespaces map[api.Kind][]string // guarded by mu; in the order of lists
}

// after yields the objects that follow on a place in a list, in the order in which the
// store has them: a page may be of the store, and the next one of a lastContact.
func (p *listedFleet) after(q *query) iter.Seq[*fleet.Entry] {
	namespaces, from := []string{q.Namespace}, api.Key{}
	if q.Everywhere {
		namespaces = p.namespacesOf(q.Kind)
	}
	if namespace, name, ok := strings.Cut(q.After, "/"); ok {
		from = store.PageKey(q.Kind, namespace, name)
		at, _ := slices.BinarySearchFunc(namespaces, from.Namespace, store.CompareNamespaces)
		namespaces = namespaces[at:]
	}
	return func(yield func(*fleet.Entry) bool) {
		for _, namespace := range namespaces {
			start := api.Key{Kind: q.Kind, Namespace: namespace}
			if namespace == from.Namespace {
				start.Name = from.Name
			}
			for entry := range p.After(start, namespace) {
				if api.KeyOf(entry.Object).Namespace != namespace {
					break
				}
				if !yield(entry) {
					return
				}
			}
		}
	}
}

// namespacesOf are the namespaces that objects of a kind are in, "" among them where some
// are in none.
func (p *listedFleet) namespacesOf(kind api.Kind) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.namespaces[kind]; ok {
		return known
	}
	var list []string
	for from, more := (api.Key{Kind: kind}), true; more; {
		more = false
		for entry := range p.After(from, "") {
			namespace := api.KeyOf(entry.Object).Namespace
			list = append(list, namespace)
			from.Namespace, from.Name, more = namespace, afterNames, true
			break
		}
	}
	slices.SortFunc(list, store.CompareNamespaces)
	if p.namespaces == nil {
		p.namespaces = map[api.Kind][]string{}
	}
	p.namespaces[kind] = list
	return list
}

// afterNames is after every name, which has only small letters, digits and dashes.
const afterNames = "~"

// What keeps snapshots for lists that go on. They share what is the same in them and now.
// All together they hold at most the versions before listLag changes, about 100 MB, and
// each the inner nodes of its tree as far as these changes touch them, which with 1,000,000
// objects are at most 20 MB. Without its lastContact a list goes on from the store.
const (
	maxListed = 4
	// pictureRest is how long a lastContact is kept for the next page, pictureAge how long
	// for all of them, and listLag how many changes of objects it may be behind.
	listRest = 5 * time.Second
	listAge  = time.Minute
	listLag  = 50_000
)

// listedFleets are the snapshots that lists go on with.
type listedFleets struct {
	now func() time.Time

	mu   sync.Mutex
	kept []*keptFleet // the one last used last
}

type keptFleet struct {
	*listedFleet

	since, used time.Time
}

// at is the lastContact that shows a revision, or the present one for revision 0; nil where
// there is none.
func (ps *listedFleets) at(revision int64, present *fleet.Snapshot) *listedFleet {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.forget(present)
	if revision == 0 {
		revision = present.Revision()
	}
	for _, k := range ps.kept {
		if k.Revision() == revision {
			return k.listedFleet
		}
	}
	if revision != present.Revision() {
		return nil
	}
	return &listedFleet{Snapshot: present}
}

// keep has a lastContact kept for the next page.
func (ps *listedFleets) keep(p *listedFleet) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	now := ps.now()
	k := &keptFleet{listedFleet: p, since: now}
	if i := slices.IndexFunc(ps.kept, func(k *keptFleet) bool { return k.Revision() == p.Revision() }); i >= 0 {
		k = ps.kept[i]
		ps.kept = slices.Delete(ps.kept, i, i+1)
	}
	k.used = now
	if ps.kept = append(ps.kept, k); len(ps.kept) > maxListed {
		ps.kept = slices.Delete(ps.kept, 0, 1)
	}
}

// forget drops what has been kept for long enough.
func (ps *listedFleets) forget(present *fleet.Snapshot) {
	now := ps.now()
	ps.kept = slices.DeleteFunc(ps.kept, func(k *keptFleet) bool {
		return now.Sub(k.used) > listRest || now.Sub(k.since) > listAge || present.ChangedSince(k.Snapshot) > listLag
	})
}

// sweep does so where nobody asks for a list, until ctx ends.
func (ps *listedFleets) sweep(ctx context.Context, present func() *fleet.Snapshot) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			ps.mu.Lock()
			ps.forget(present())
			ps.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}
