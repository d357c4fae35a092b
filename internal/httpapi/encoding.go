package httpapi

import (
	"container/list"
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// maxEncoded bounds what is kept, for all watches together, of changes in the form
// in which they are sent.
const maxEncoded = 16 << 20

// encodings keeps changes in the form in which they are sent, so that each is
// encoded once for all watches that show it alike. It holds the latest ones up to
// maxEncoded; whoever is still writing one that falls out is too slow.
type encodings struct {
	mu       sync.Mutex
	pieces   map[encodingKey]*list.Element // of *encoding
	order    list.List
	bytes    int
	watchers int
	most     int           // watches at a time since there was none
	left     chan struct{} // gets a value when many have left
}

// encodingKey tells apart what differs: the change, and for whom it is shown.
type encodingKey struct {
	event  *event
	change int
	form   string
}

// encoding is one change in one form.
type encoding struct {
	key     encodingKey
	once    sync.Once
	data    []byte
	counted int
	// readers are those who are writing it.
	readers map[*watchStream]struct{}
}

// enter and leave count the watches. Without any, nothing is kept.
func (e *encodings) enter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watchers++
	e.most = max(e.most, e.watchers)
}

func (e *encodings) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watchers--; e.watchers > 0 {
		return
	}
	if e.bytes > maxEncoded/4 || e.most > manyWatches {
		select {
		case e.left <- struct{}{}:
		default: // it is known already
		}
	}
	e.pieces, e.bytes, e.most = nil, 0, 0
	e.order.Init()
}

// manyWatches are as many as take memory that is worth giving back.
const manyWatches = 50

// giveBack returns the memory of watches that have left to the system, until ctx
// ends. A server that nobody asks for anything would not do so for minutes. It
// costs a collection, so it is not done often.
func (e *encodings) giveBack(ctx context.Context) {
	for {
		select {
		case <-e.left:
		case <-ctx.Done():
			return
		}
		if !backoff.Wait(ctx, 15*time.Second) { // their connections end, too
			return
		}
		debug.FreeOSMemory()
	}
}

// use gives a reader the encoding of a change while it writes it; encode makes it
// where there is none.
func (e *encodings) use(reader *watchStream, key encodingKey, encode func() []byte, write func([]byte) error) error {
	piece := e.take(reader, key)
	defer e.give(reader, piece)
	piece.once.Do(func() {
		piece.data = encode()
		for _, slow := range e.count(piece) {
			slow.cut()
		}
	})
	if piece.data == nil {
		return errNotEncoded
	}
	return write(piece.data)
}

// errNotEncoded is for those who waited for an encoding that failed.
var errNotEncoded = errors.New("the change could not be encoded")

func (e *encodings) take(reader *watchStream, key encodingKey) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if element, ok := e.pieces[key]; ok {
		if piece, ok := element.Value.(*encoding); ok {
			piece.readers[reader] = struct{}{}
			return piece
		}
	}
	piece := &encoding{key: key, readers: map[*watchStream]struct{}{reader: {}}}
	if e.pieces == nil {
		e.pieces = map[encodingKey]*list.Element{}
	}
	e.pieces[key] = e.order.PushBack(piece)
	return piece
}

// count adds what was encoded, and drops the oldest where that is too much. It
// returns those who are still writing it.
func (e *encodings) count(piece *encoding) (slow []*watchStream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	element, kept := e.pieces[piece.key]
	if !kept || element.Value != any(piece) {
		return nil // dropped meanwhile
	}
	piece.counted = cap(piece.data)
	e.bytes += piece.counted
	for oldest := e.order.Front(); e.bytes > maxEncoded && oldest != nil && oldest != element; oldest = e.order.Front() {
		e.order.Remove(oldest)
		if dropped, ok := oldest.Value.(*encoding); ok {
			delete(e.pieces, dropped.key)
			e.bytes -= dropped.counted
			slow = slices.AppendSeq(slow, maps.Keys(dropped.readers))
		}
	}
	return slow
}

func (e *encodings) give(reader *watchStream, piece *encoding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(piece.readers, reader)
}
