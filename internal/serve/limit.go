package serve

import (
	"container/list"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// LimitOptions configures a Limit.
type LimitOptions struct {
	// Total bounds the open connections of all listeners together, PerClient those
	// of one client address to one listener. Zero means 4096 and 256.
	Total, PerClient int
	// RequestWithin is how long a connection may stay open without a whole header
	// of a request. Zero means 10 seconds.
	RequestWithin time.Duration
	// Grace is how long a connection that does not ask for anything stays open at
	// least: clients are busy, too. Zero means 250 milliseconds.
	Grace time.Duration
	// Logger receives what goes wrong. Nil discards it.
	Logger *slog.Logger
}

// Limit bounds the open connections of a process. Every listener is sure of a
// part of them, so that none of them takes the places of another.
type Limit struct {
	options LimitOptions
	metrics *metrics

	mu        sync.Mutex
	listeners []*Listener
	open      int
}

// NewLimit makes a limit without listeners.
func NewLimit(o LimitOptions) *Limit {
	if o.Total == 0 {
		o.Total = 4096
	}
	if o.PerClient == 0 {
		o.PerClient = 256
	}
	if o.RequestWithin == 0 {
		o.RequestWithin = 10 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 250 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Limit{options: o, metrics: newMetrics()}
}

// Collectors are the metrics of all listeners.
func (l *Limit) Collectors() []prometheus.Collector { return l.metrics.collectors() }

// reserved is how many connections every listener may have whatever the others
// have: half of an equal share.
func (l *Limit) reserved() int { return l.options.Total / len(l.listeners) / 2 }

// phase is what a connection does, as far as that tells who makes room for whom.
type phase int

const (
	// silent is a new connection from which nothing has come.
	silent phase = iota
	// idle is a connection between two requests.
	idle
	// speaking is one on which a request, or the TLS handshake before the first
	// one, has begun to arrive.
	speaking
	// receiving is one whose request has a body that has not arrived as a whole.
	receiving
	// answering is one whose request is being worked on. It never makes room.
	answering
)

// queues holds connections by phase, the one that has been in it for longest
// first.
type queues [answering]list.List

// crowd is how many connections there are in the phase that has most of them.
func (q *queues) crowd() int {
	most := 0
	for in := range q {
		most = max(most, q[in].Len())
	}
	return most
}

// next is the connection that makes room first: of the phase that has most of
// them, the one that has been in it for longest. Who floods the server with one
// kind of connection thereby pushes out those of this kind: whoever has got
// further, or not yet as far, stays. Without such a connection, pending says
// whether there will be one in a moment: it has to have been in its phase since
// before a time.
func (q *queues) next(before time.Time) (c *conn, pending bool) {
	for most := q.crowd(); most > 0; {
		less := 0
		for in := range q {
			switch size := q[in].Len(); {
			case size < most:
				less = max(less, size)
			case size == most:
				c, young := firstWaiting(&q[in], before)
				if c != nil {
					return c, false
				}
				if young || phase(in) != receiving { // who reads a body may take a break
					return nil, true
				}
			}
		}
		most = less
	}
	return nil, false
}

// firstWaiting is the first connection on which it has been the client's turn for
// long enough; young says that there are those whose time has yet to come.
func firstWaiting(queue *list.List, before time.Time) (c *conn, young bool) {
	for element := queue.Front(); element != nil; element = element.Next() {
		switch c, _ := element.Value.(*conn); {
		case c == nil:
		case c.since.After(before):
			return nil, true // like those behind it
		case c.waiting && !hasUnread(c.Conn):
			return c, false
		}
	}
	return nil, false
}

// hasUnread reports whether something has come on a connection that the server has
// not got round to reading.
func hasUnread(c net.Conn) bool {
	raw, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	var n int
	_ = control.Control(func(fd uintptr) { // fails on a closed connection only
		n, _, _ = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return n > 0
}

// client is one address at one listener.
type client struct {
	open   int
	queues queues
}

// patience is how long a new connection waits for one that makes room.
const patience = 2 * time.Second

// admit counts a connection in, and names the limit that it would break. Where
// another connection makes room it is returned, for the caller to close. It waits
// while none has had the time that every connection gets: a flood is slowed down
// rather than let one fall victim that is about to ask.
func (l *Limit) admit(at *Listener, c *conn) (evicted *conn, limit string) {
	for began := time.Now(); ; {
		now := time.Now()
		evicted, limit, pending := l.tryAdmit(at, c, now.Add(-l.options.Grace))
		if limit == "" || evicted != nil || !pending || now.Sub(began) > patience {
			return evicted, limit
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-at.closed:
			return nil, limit
		}
	}
}

func (l *Limit) tryAdmit(at *Listener, c *conn, before time.Time) (evicted *conn, limit string, pending bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := at.clients[c.address]
	switch {
	case of != nil && of.open >= l.options.PerClient:
		limit = "client"
		evicted, pending = of.queues.next(before)
	case !l.room(at):
		limit = "total"
		evicted, pending = l.nextFor(at, before)
	}
	switch {
	case evicted != nil:
		l.remove(evicted)
	case limit != "":
		return nil, limit, pending
	}
	if of = at.clients[c.address]; of == nil {
		of = &client{}
		at.clients[c.address] = of
	}
	c.client = of
	of.open++
	at.open++
	l.open++
	l.metrics.open.Inc()
	c.between = true
	l.enter(c, silent)
	c.silence = time.AfterFunc(l.options.RequestWithin, c.timeOut)
	return evicted, limit, false
}

// makeRoom closes a connection for a listener that lacks file descriptors.
func (l *Limit) makeRoom(at *Listener) {
	l.mu.Lock()
	evicted, _ := l.nextFor(at, time.Now())
	if evicted != nil {
		l.remove(evicted)
	}
	l.mu.Unlock()
	if evicted != nil {
		evicted.evict("descriptors")
	}
}

// room reports whether a listener may have another connection, with what is
// reserved for the others.
func (l *Limit) room(at *Listener) bool {
	taken := l.open
	for _, other := range l.listeners {
		if other != at {
			taken += max(0, l.reserved()-other.open)
		}
	}
	return taken < l.options.Total
}

// nextFor is the connection that makes room for a listener: one of its own, or of
// another that has more than what is reserved for it.
func (l *Limit) nextFor(at *Listener, before time.Time) (c *conn, pending bool) {
	from := at
	for _, other := range l.listeners {
		if other != at && other.open > l.reserved() && other.queues.crowd() > from.queues.crowd() {
			from = other
		}
	}
	return from.queues.next(before)
}

// enter puts a connection at the end of the queue of a phase.
func (l *Limit) enter(c *conn, in phase) {
	l.leave(c)
	c.phase, c.since = in, time.Now()
	if in != answering {
		c.inListener = c.listener.queues[in].PushBack(c)
		c.inClient = c.client.queues[in].PushBack(c)
	}
}

func (l *Limit) leave(c *conn) {
	if c.inListener != nil {
		c.listener.queues[c.phase].Remove(c.inListener)
		c.client.queues[c.phase].Remove(c.inClient)
		c.inListener, c.inClient = nil, nil
	}
}

// remove counts a connection out; false where that has been done.
func (l *Limit) remove(c *conn) bool {
	if c.gone {
		return false
	}
	c.gone = true
	c.silence.Stop()
	l.leave(c)
	l.open--
	c.listener.open--
	if c.client.open--; c.client.open == 0 {
		delete(c.listener.clients, c.address)
	}
	l.metrics.open.Dec()
	return true
}
