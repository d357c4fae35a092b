// Package feed watches the nodes and pods of Kubernetes clusters, once for all of its
// users, and keeps only a few values of each object. To watch other objects in the same
// way, use a Reflector of a feed.
package feed

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
)

const (
	// ListsAtOnce is how many pages of lists are read at a time, over all
	// clusters. It bounds the memory that they take while they are read.
	ListsAtOnce = 8
	// requestsPerSecond and requestsAtOnce bound what one cluster is asked for its
	// nodes and pods, whatever it answers: only the pages of a list come in a row.
	requestsPerSecond = 50
	requestsAtOnce    = 100
	// maxAnswer bounds a page: one of pods takes a few MiB.
	maxAnswer = 64 << 20
)

// Group are the feeds of clusters: one for each, whoever follows it.
type Group struct {
	// Clusters are the connections.
	Clusters *kube.Clusters

	faults *fault.Component
	places *semaphore.Weighted

	mu   sync.Mutex
	open map[access]*Feed
}

// access is whose feed it is: as for connections, other credentials are another one.
type access struct {
	cluster    string
	kubeconfig api.Secret
}

// NewGroup makes a Group without feeds. faults is told of panics over objects of
// clusters; nil tells nobody.
func NewGroup(clusters *kube.Clusters, faults *fault.Component) *Group {
	return &Group{Clusters: clusters, faults: faults, places: semaphore.NewWeighted(ListsAtOnce), open: map[access]*Feed{}}
}

// Open returns the feed of the cluster that a kubeconfig describes. Nothing is asked
// before somebody follows it. The caller closes it in the end.
func (g *Group) Open(cluster string, kubeconfig api.Secret) (*Feed, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := access{cluster, kubeconfig}
	f := g.open[key]
	if f == nil {
		config, connection, err := g.Clusters.Open(cluster, kubeconfig, maxAnswer)
		if err != nil {
			return nil, err
		}
		config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		core, err := typedcorev1.NewForConfigAndClient(config, connection.HTTP)
		if err != nil {
			connection.Close()
			return nil, kube.Incomplete()
		}
		f = newFeed(cluster, core, g.places, g.faults)
		f.close = func() { g.leave(key, f, connection) }
		g.open[key] = f
	}
	f.users++
	return f, nil
}

// leave takes a user of a feed away, and the feed with the last.
func (g *Group) leave(key access, f *Feed, connection *kube.Connection) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(g.open, key)
		connection.Close() // ends what hangs
	}
}

// Feed is what is known of the nodes and pods of one cluster, while somebody follows it.
type Feed struct {
	// Gate holds back requests while the cluster does not answer.
	Gate  *Gate
	Nodes *Table[Node]
	Pods  *Table[Pod]

	cluster string
	core    typedcorev1.CoreV1Interface
	faults  *fault.Component
	close   func()
	users   int // guarded by the group

	mu        sync.Mutex
	followers []*Follower
	stop      context.CancelFunc // of what runs
	ended     <-chan struct{}    // closed when it has ended
}

// New makes a feed outside of a Group, of what a client lists and watches.
func New(cluster string, core typedcorev1.CoreV1Interface, faults *fault.Component) *Feed {
	return newFeed(cluster, core, semaphore.NewWeighted(ListsAtOnce), faults)
}

func newFeed(cluster string, core typedcorev1.CoreV1Interface, places *semaphore.Weighted, faults *fault.Component) *Feed {
	return &Feed{
		Gate: newGate(places), Nodes: NewTable(NodeOf, sameNode), Pods: NewTable(PodOf, samePod),
		cluster: cluster, core: core, faults: faults, close: func() {},
	}
}

// Close ends the use of a feed.
func (f *Feed) Close() { f.close() }

// Follower is told what is new of nodes and pods.
type Follower struct {
	// Changed is told that nodes or pods, or what goes wrong with them, are other than
	// before. It must be quick. Nil tells nobody.
	Changed func()
	// Probes says that the follower tells the Gate how the cluster is, and that nothing
	// is asked before it has.
	Probes bool
	// Details are nil for who needs sums only. Without them the pods that take up no
	// room are left out. One follower at a time has them.
	Details *Details
}

// Details are for who needs to know more of each node and pod. Nodes and Pods are
// called first with all there are, and then with what changes; they must be quick and
// not ask the feed.
type Details struct {
	// NodeOf and PodOf make what is kept of an object; a pod is given with its requests.
	NodeOf func(*corev1.Node) any
	PodOf  func(*corev1.Pod, Amount) any
	Nodes  func(iter.Seq[Change[Node]])
	Pods   func(iter.Seq[Change[Pod]])
}

// Follow has somebody follow the cluster until leave is called, which returns when
// nothing is told any more.
func (f *Feed) Follow(follower Follower) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !follower.Probes {
		f.Gate.presume()
	}
	f.followers = append(f.followers, &follower)
	if len(f.followers) == 1 || follower.Details != nil {
		f.restart()
	}
	return sync.OnceFunc(func() { f.leave(&follower) })
}

func (f *Feed) leave(follower *Follower) {
	f.mu.Lock()
	kept := make([]*Follower, 0, len(f.followers))
	for _, other := range f.followers {
		if other != follower {
			kept = append(kept, other)
		}
	}
	f.followers = kept
	if follower.Details != nil {
		f.Nodes.Tell(nil)
		f.Pods.Tell(nil)
	}
	if follower.Probes && len(kept) > 0 {
		f.Gate.Set(nil) // nobody says any more how the cluster is
	}
	if len(kept) == 0 || follower.Details != nil {
		f.restart()
	}
	ended := f.ended
	f.mu.Unlock()
	if len(kept) == 0 {
		<-ended
	}
}

// restart has what those who follow need listed and watched, from the beginning. The
// caller holds the lock.
func (f *Feed) restart() {
	before := f.ended
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	if len(f.followers) == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	f.stop, f.ended = stop, ended
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		f.run(ctx)
		f.forget()
	}()
}

// forget gives up what is known where nobody follows it.
func (f *Feed) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.followers) == 0 {
		f.Nodes.forget()
		f.Pods.forget()
	}
}

// run lists and watches until ctx ends.
func (f *Feed) run(ctx context.Context) {
	f.mu.Lock()
	if ctx.Err() != nil { // somebody has left or come meanwhile
		f.mu.Unlock()
		return
	}
	selector := f.become()
	f.mu.Unlock()
	nodes := reflect(f, f.Nodes, sourceOf(f.core.Nodes(), ""), f.changed)
	pods := reflect(f, f.Pods, sourceOf(f.core.Pods(metav1.NamespaceAll), selector), f.changed)
	var group sync.WaitGroup
	defer group.Wait()
	for _, run := range []func(context.Context){nodes.Run, pods.Run} {
		group.Go(func() { f.faults.Go(f.key(), func() { run(ctx) }) })
	}
}

// become has the tables keep what those who follow need, and returns what selects the
// pods for them. The caller holds the lock.
func (f *Feed) become() (selector string) {
	for _, follower := range f.followers {
		if d := follower.Details; d != nil {
			f.Attach(*d)
			return ""
		}
	}
	f.Nodes.become(NodeOf)
	f.Pods.become(PodOf)
	return placedPods
}

// Attach has the tables keep details, and tells of them. Follow does it for who needs
// them.
func (f *Feed) Attach(d Details) {
	f.Nodes.become(nodeWith(d.NodeOf))
	f.Pods.become(podWith(d.PodOf))
	f.Nodes.Tell(d.Nodes)
	f.Pods.Tell(d.Pods)
}

// key is how the cluster is named in the log.
func (f *Feed) key() string { return api.Key{Kind: api.KindCluster, Name: f.cluster}.String() }

// changed tells everybody that something is new.
func (f *Feed) changed() {
	f.mu.Lock()
	followers := f.followers
	f.mu.Unlock()
	for _, follower := range followers {
		if follower.Changed != nil {
			follower.Changed()
		}
	}
}
