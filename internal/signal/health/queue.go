package health

// queue is a heap of clusters, the one that is due first on top. A cluster has no
// goroutine while nothing is due, as it would in a keyed.Group: of 10,000 clusters those
// would take 48 MB to wait for a heartbeat. In the queue they take 80 KB.
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
	c := x.(*cluster) //nolint:forcetypeassert // heap.Push passes on what schedule gives it
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

// lane runs tasks, so many at a time; the others wait in the order they came.
// It is guarded by the monitor's lock.
type lane struct {
	limit, running int
	waiting        []func()
}
