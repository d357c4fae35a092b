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

// maxEncoded limits the size of cached encodings of changes, for all watches together.
const maxEncoded = 16 << 20

// encodings caches changes in encoded form, so that each is encoded once for all watches that show
// it in the same form. It holds the latest ones up to maxEncoded; a watch that is still writing an
// evicted one is too slow.
type encodings struct {
	mu       sync.Mutex
	pieces   map[encodingKey]*list.Element // of *encoding
	order    list.List
	bytes    int
	watchers int
	most     int           // maximum number of concurrent watches since there were none
	left     chan struct{} // gets a value when many have left
}

// encodingKey identifies an encoding: the change, and for whom it is shown.
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
	// readers are the watches that are writing it.
	readers map[*watchStream]struct{}
}

// enter and leave count the watches. Without any, nothing is cached.
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
		default: // already notified
		}
	}
	e.pieces, e.bytes, e.most = nil, 0, 0
	e.order.Init()
}

// manyWatches is how many watches use an amount of memory that is worth returning.
const manyWatches = 50

// giveBack returns the memory of watches that have ended to the operating system, until ctx is
// done. An idle server would not do so for minutes. It costs a garbage collection, so it is not
// done often.
func (e *encodings) giveBack(ctx context.Context) {
	for {
		select {
		case <-e.left:
		case <-ctx.Done():
			return
		}
		if !backoff.Wait(ctx, 15*time.Second) { // wait for their connections to end too
			return
		}
		debug.FreeOSMemory()
	}
}

// use passes the encoding of a change to write on behalf of a reader; encode creates it if
// necessary.
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

// errNotEncoded is returned to readers that waited for an encoding that failed.
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

// count adds an encoding, and evicts the oldest ones beyond the limit. It returns the readers that
// are still writing these.
func (e *encodings) count(piece *encoding) (slow []*watchStream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	element, kept := e.pieces[piece.key]
	if !kept || element.Value != any(piece) {
		return nil // evicted in the meantime
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
