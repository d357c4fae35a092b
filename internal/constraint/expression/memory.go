package expression

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// costly is the cost of one evaluation, in CEL units, from which an expression remembers its
	// results.
	costly = 10_000
	// maxRemembered is the maximum number of results of one expression that are remembered.
	maxRemembered = 1 << 17
)

// memory holds results of an expression that takes long, so that each is computed once. It changes
// no result. It is safe for concurrent use.
type memory struct {
	mu sync.Mutex
	of map[string]remembered // by Expression.key; nil while the expression is not costly
}

// Versioned is a Cluster whose versions can be distinguished. Results for others are not remembered.
type Versioned interface {
	Cluster
	// Version is equal only if everything is that an expression may read, except metrics and scores.
	Version() any
}

// remembered is the result for one version of a cluster.
type remembered struct {
	version any
	read    []reading
	result  bool
	err     error
}

// reading is a metric or placement score as it was read.
type reading struct {
	name      string
	score     bool
	value     float64
	usable    bool
	scores    []Score
	expiredAt time.Time
}

// same reports whether a cluster still has what was read.
func (r *reading) same(c Cluster) bool {
	if r.score {
		scores, expiredAt := c.Scores(r.name)
		return slices.Equal(scores, r.scores) && (scores == nil) == (r.scores == nil) && expiredAt.Equal(r.expiredAt)
	}
	value, usable := c.Metric(r.name)
	return value == r.value && usable == r.usable
}

// reader records the metrics and scores that an evaluation reads.
type reader struct {
	Cluster
	read []reading
}

// Metric implements Cluster.
func (r *reader) Metric(name string) (float64, bool) {
	value, usable := r.Cluster.Metric(name)
	r.read = append(r.read, reading{name: name, value: value, usable: usable})
	return value, usable
}

// Scores implements Cluster.
func (r *reader) Scores(resource string) ([]Score, time.Time) {
	scores, expiredAt := r.Cluster.Scores(resource)
	r.read = append(r.read, reading{name: resource, score: true, scores: scores, expiredAt: expiredAt})
	return scores, expiredAt
}

// key identifies a cluster, and version the state of it, in the memory of the expression. ok is false
// if its results are not remembered.
func (e *Expression) key(c Cluster) (key string, version any, ok bool) {
	if !e.reads.other {
		return string(e.AppendKey(nil, c)), nil, true
	}
	v, ok := c.(Versioned)
	if !ok {
		return "", nil, false
	}
	return c.Name(), v.Version(), true
}

// lookup returns the remembered result for a cluster.
func (e *Expression) lookup(c Cluster) (known remembered, ok bool) {
	if !e.memory.active() {
		return remembered{}, false
	}
	key, version, ok := e.key(c)
	if !ok {
		return remembered{}, false
	}
	e.memory.mu.Lock()
	known, ok = e.memory.of[key]
	e.memory.mu.Unlock()
	if !ok || known.version != version || slices.ContainsFunc(known.read, func(r reading) bool { return !r.same(c) }) {
		return remembered{}, false
	}
	return known, true
}

// active reports whether results are remembered.
func (m *memory) active() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of != nil
}

// activate has results be remembered from now on.
func (m *memory) activate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]remembered{}
	}
}

// keep remembers the result for a cluster.
func (e *Expression) keep(c *reader, result bool, err error) {
	key, version, ok := e.key(c.Cluster)
	if !ok {
		return
	}
	m := &e.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.of) >= maxRemembered { // most are of clusters that are gone
		clear(m.of)
	}
	m.of[key] = remembered{version, c.read, result, err}
}

// Bounded reports whether an evaluation takes no longer than reading the cluster and the expression.
func (e *Expression) Bounded() bool { return e.reads.bounded }

// Remembers reports whether the expression remembers results, because it has been found to be costly
// or was told to.
func (e *Expression) Remembers() bool { return e.memory.active() }

// Remember has the expression remember results from now on, unless it is bounded.
func (e *Expression) Remember() {
	if !e.reads.bounded {
		e.memory.activate()
	}
}

// Afford is Match while there is anything left of a budget in CEL units: what the evaluation costs is
// taken from it. If nothing is left, the result is not known; with Remember, the next attempt continues
// from here. What is bounded or remembered costs nothing.
func (e *Expression) Afford(c Cluster, budget *int) (match, known bool) {
	if e.reads.bounded {
		return e.Match(c), true
	}
	if r, ok := e.lookup(c); ok {
		return r.err == nil && r.result, true
	}
	if *budget <= 0 {
		return false, false
	}
	match, cost, err := e.run(c)
	*budget -= max(cost, 1)
	return err == nil && match, true
}

// AppendKey encodes the values that the result depends on, of an expression that depends on nothing
// but labels and claims. Expressions distinguish absent maps from others, so the encoding does too.
func (e *Expression) AppendKey(out []byte, c Cluster) []byte {
	return appendValues(appendValues(out, e.reads.labels, c.Labels()), e.reads.claims, c.Claims())
}

// appendValues encodes the values of keys unambiguously.
func appendValues(out []byte, keys []string, values map[string]string) []byte {
	if len(values) == 0 {
		return append(out, '!')
	}
	for _, key := range keys {
		value, present := values[key]
		if !present {
			out = append(out, '-')
			continue
		}
		out = strconv.AppendInt(out, int64(len(value)), 10)
		out = append(out, ':')
		out = append(out, value...)
	}
	return out
}
