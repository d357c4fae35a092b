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
	// Total limits the open connections of all listeners together, PerClient those of one client
	// address to one listener. Zero means 4096 and 256.
	Total, PerClient int
	// RequestWithin is how long a connection may stay open without a complete request header. Zero
	// means 10 seconds.
	RequestWithin time.Duration
	// Grace is the minimum time for which a connection without a request stays open, because
	// clients may be busy. Zero means 250 milliseconds.
	Grace time.Duration
	// Logger receives errors. If nil, log messages are discarded.
	Logger *slog.Logger
}

// Limit limits the open connections of a process. A part of them is reserved for every listener.
type Limit struct {
	options LimitOptions
	metrics *metrics

	mu        sync.Mutex
	listeners []*Listener
	open      int
}

// NewLimit returns a limit without listeners.
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

// Collectors returns the metrics of all listeners.
func (l *Limit) Collectors() []prometheus.Collector { return l.metrics.collectors() }

// reserved returns how many connections every listener may have regardless of the others: half of
// an equal share.
func (l *Limit) reserved() int { return l.options.Total / len(l.listeners) / 2 }

// phase is the state of a connection, which determines which one is closed to make room.
type phase int

const (
	// silent is a new connection that has received nothing.
	silent phase = iota
	// idle is a connection between requests.
	idle
	// speaking is a connection on which a request, or the TLS handshake before the first one, has
	// begun to arrive.
	speaking
	// receiving is a connection with a request whose body is incomplete.
	receiving
	// answering is a connection with a request in progress. It is never closed to make room.
	answering
)

// queues holds connections by phase, the oldest in the phase first.
type queues [answering]list.List

// crowd returns the number of connections in the largest phase.
func (q *queues) crowd() int {
	most := 0
	for in := range q {
		most = max(most, q[in].Len())
	}
	return most
}

// next returns the connection to close first: in the largest phase, the oldest. A client that
// floods the server with one kind of connection thereby displaces its own kind: connections in
// other phases stay. If there is none, pending says whether there will be one in a moment: it must
// have been in its phase since before the given time.
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
				if young || phase(in) != receiving { // a handler may pause reading a body
					return nil, true
				}
			}
		}
		most = less
	}
	return nil, false
}

// firstWaiting returns the first connection that has waited for the client long enough; young says
// that there are others whose time has not come.
func firstWaiting(queue *list.List, before time.Time) (c *conn, young bool) {
	for element := queue.Front(); element != nil; element = element.Next() {
		switch c, _ := element.Value.(*conn); {
		case c == nil:
		case c.since.After(before):
			return nil, true // so are those after it
		case c.waiting && !hasUnread(c.Conn):
			return c, false
		}
	}
	return nil, false
}

// hasUnread reports whether data has arrived on a connection that the server has not read yet.
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
	_ = control.Control(func(fd uintptr) { // fails only on a closed connection
		n, _, _ = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return n > 0
}

// client is one address at one listener.
type client struct {
	open   int
	queues queues
}

// patience is how long a new connection waits for another one to be closed.
const patience = 2 * time.Second

// admit counts a connection, or returns the name of the limit that it would exceed. If another
// connection must make room, it is returned for the caller to close. It waits while every
// connection is within its grace period: slowing down a flood is better than closing a connection
// that is about to send a request.
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

// room reports whether a listener may have another connection, given the reservations of the
// others.
func (l *Limit) room(at *Listener) bool {
	taken := l.open
	for _, other := range l.listeners {
		if other != at {
			taken += max(0, l.reserved()-other.open)
		}
	}
	return taken < l.options.Total
}

// nextFor returns the connection to close for a listener: one of its own, or of another that
// exceeds its reservation.
func (l *Limit) nextFor(at *Listener, before time.Time) (c *conn, pending bool) {
	from := at
	for _, other := range l.listeners {
		if other != at && other.open > l.reserved() && other.queues.crowd() > from.queues.crowd() {
			from = other
		}
	}
	return from.queues.next(before)
}

// enter appends a connection to the queue of a phase.
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

// remove uncounts a connection; it returns false if that has been done.
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
