package health

// queue is a heap of clusters, the next due one on top. Clusters have no goroutine while nothing is
// due, as they would in a keyed.Group: 10,000 clusters would need 48 MB while waiting for
// heartbeats. In the queue they need 80 KB.
type queue []*cluster

// Len implements heap.Interface.
func (q *queue) Len() int { return len(*q) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool { return (*q)[i].due.Before((*q)[j].due) }

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) {
	s := *q
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	c := x.(*cluster) //nolint:forcetypeassert // schedule pushes only clusters
	c.index = len(*q)
	*q = append(*q, c)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	c.index = -1
	return c
}

// lane runs a limited number of concurrent tasks; others wait in order. It is guarded by the
// monitor's lock.
type lane struct {
	limit, running int
	waiting        []func()
}
