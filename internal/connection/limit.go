// Package connection bounds the connections that clients hold open to the
// server, over all its listeners together. Where there are too many, those on
// which nobody has asked for anything make room for new ones.
package connection

import (
	"container/list"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configures a Limit.
type Options struct {
	// Total bounds the open connections of all listeners together, PerClient those
	// of one client address to one listener. Zero means 4096 and 256.
	Total, PerClient int
	// RequestWithin is how long a connection may stay open without a whole header
	// of a request. Zero means 10 seconds.
	RequestWithin time.Duration
	// Logger receives what goes wrong. Nil discards it.
	Logger *slog.Logger
}

// Limit bounds the open connections of a process. Every listener is sure of a
// part of them, so that none of them takes the places of another.
type Limit struct {
	options Options
	metrics *metrics

	mu        sync.Mutex
	listeners []*Listener
	open      int
}

// New makes a limit without listeners.
func New(o Options) *Limit {
	if o.Total == 0 {
		o.Total = 4096
	}
	if o.PerClient == 0 {
		o.PerClient = 256
	}
	if o.RequestWithin == 0 {
		o.RequestWithin = 10 * time.Second
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
	// waiting is a connection without a request: a new one, one between two
	// requests, and one whose header is not complete.
	waiting phase = iota
	// receiving is one whose request has a body that has not arrived as a whole.
	receiving
	// answering is one whose request is being worked on. It never makes room.
	answering
)

// queues holds connections by phase, the one that has been in it for longest
// first.
type queues [answering]list.List

// first is the connection that makes room first, nil where none does.
func (q *queues) first(of phase) *conn {
	if front := q[of].Front(); front != nil {
		c, _ := front.Value.(*conn)
		return c
	}
	return nil
}

// client is one address at one listener.
type client struct {
	open   int
	queues queues
}

// admit counts a connection in, and names the limit that it would break. Where
// other connections make room they are returned, for the caller to close.
func (l *Limit) admit(at *Listener, c *conn) (evicted *conn, limit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := at.clients[c.address]
	switch {
	case of != nil && of.open >= l.options.PerClient:
		if evicted, limit = oldest(&of.queues), "client"; evicted == nil {
			return nil, limit
		}
	case !l.room(at):
		if evicted, limit = l.oldestFor(at), "total"; evicted == nil {
			return nil, limit
		}
	}
	if evicted != nil {
		l.remove(evicted)
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
	c.idle = true
	c.untouched.Store(true)
	l.enter(c, waiting)
	c.silence = time.AfterFunc(l.options.RequestWithin, c.silent)
	return evicted, limit
}

// makeRoom closes a connection for a listener that lacks file descriptors.
func (l *Limit) makeRoom(at *Listener) {
	l.mu.Lock()
	evicted := l.oldestFor(at)
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

// oldest is the connection that makes room among some: one without a request
// before one in the middle of it.
func oldest(q *queues) *conn {
	if c := q.first(waiting); c != nil {
		return c
	}
	return q.first(receiving)
}

// oldestFor is the connection that makes room for a listener: one of its own, or
// of another that has more than what is reserved for it.
func (l *Limit) oldestFor(at *Listener) *conn {
	for _, in := range []phase{waiting, receiving} {
		var found *conn
		for _, other := range l.listeners {
			if other != at && other.open <= l.reserved() {
				continue
			}
			if c := other.queues.first(in); c != nil && (found == nil || c.since.Before(found.since)) {
				found = c
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
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
