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
	picture *picture
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
		ResourceVersion: strconv.FormatInt(p.query.Revision, 10), Damaged: p.objects.damagedIn(p.query, p.picture.Snapshot),
	}
	if next != "" {
		p.query.After = next
		p.objects.pictures.keep(p.picture)
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
		for entry := range p.picture.after(p.query) {
			if !p.objects.belongs(p.query, entry.Object) || p.picture.Damaged(api.KeyOf(entry.Object)) != nil {
				continue
			}
			if !yield(entry) {
				return
			}
		}
	}
}

// picture is a snapshot of the fleet that pages of lists show.
type picture struct {
	*fleet.Snapshot

	mu         sync.Mutex
	namespaces map[api.Kind][]string // guarded by mu; in the order of lists
}

// after yields the objects that follow on a place in a list, in the order in which the
// store has them: a page may be of the store, and the next one of a picture.
func (p *picture) after(q *query) iter.Seq[*fleet.Entry] {
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
func (p *picture) namespacesOf(kind api.Kind) []string {
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

// What keeps pictures of lists that go on. Pictures share what is the same in them and now.
// All together they hold at most the versions before pictureLag changes, about 100 MB, and
// each the inner nodes of its tree as far as these changes touch them, which with 1,000,000
// objects are at most 20 MB. Without its picture a list goes on from the store.
const (
	maxPictures = 4
	// pictureRest is how long a picture is kept for the next page, pictureAge how long
	// for all of them, and pictureLag how many changes of objects it may be behind.
	pictureRest = 5 * time.Second
	pictureAge  = time.Minute
	pictureLag  = 50_000
)

// pictures are those that lists go on with.
type pictures struct {
	now func() time.Time

	mu   sync.Mutex
	kept []*keptPicture // the one last used last
}

type keptPicture struct {
	*picture

	since, used time.Time
}

// at is the picture that shows a revision, or the present one for revision 0; nil where
// there is none.
func (ps *pictures) at(revision int64, present *fleet.Snapshot) *picture {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.forget(present)
	if revision == 0 {
		revision = present.Revision()
	}
	for _, k := range ps.kept {
		if k.Revision() == revision {
			return k.picture
		}
	}
	if revision != present.Revision() {
		return nil
	}
	return &picture{Snapshot: present}
}

// keep has a picture kept for the next page.
func (ps *pictures) keep(p *picture) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	now := ps.now()
	k := &keptPicture{picture: p, since: now}
	if i := slices.IndexFunc(ps.kept, func(k *keptPicture) bool { return k.Revision() == p.Revision() }); i >= 0 {
		k = ps.kept[i]
		ps.kept = slices.Delete(ps.kept, i, i+1)
	}
	k.used = now
	if ps.kept = append(ps.kept, k); len(ps.kept) > maxPictures {
		ps.kept = slices.Delete(ps.kept, 0, 1)
	}
}

// forget drops what has been kept for long enough.
func (ps *pictures) forget(present *fleet.Snapshot) {
	now := ps.now()
	ps.kept = slices.DeleteFunc(ps.kept, func(k *keptPicture) bool {
		return now.Sub(k.used) > pictureRest || now.Sub(k.since) > pictureAge || present.ChangedSince(k.Snapshot) > pictureLag
	})
}

// sweep does so where nobody asks for a list, until ctx ends.
func (ps *pictures) sweep(ctx context.Context, present func() *fleet.Snapshot) {
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
