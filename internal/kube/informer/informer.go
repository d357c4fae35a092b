// Package informer watches the nodes and pods of Kubernetes clusters, once for all of its users, and
// keeps only a few values of each object. To watch other objects in the same way, use a Reflector
// of an informer.
package informer

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

const (
	// ListsAtOnce is the number of list pages read concurrently, over all clusters. It limits the
	// memory that they use.
	ListsAtOnce = 8
	// requestsPerSecond and requestsAtOnce limit the requests to one cluster for nodes and pods:
	// only the pages of a list come in quick succession.
	requestsPerSecond = 50
	requestsAtOnce    = 100
	// maxAnswer limits the size of a page: a page of pods is a few MiB.
	maxAnswer = 64 << 20
)

// Group manages the informers of clusters: one for each, shared by all followers.
type Group struct {
	// Clusters are the connections.
	Clusters *kube.Clusters

	faults *recovery.Component
	places *semaphore.Weighted

	mu   sync.Mutex
	open map[access]*Informer
}

// access identifies an informer: as for connections, other credentials mean another informer.
type access struct {
	cluster    string
	kubeconfig api.Secret
}

// NewGroup returns a Group without informers. faults records panics caused by objects of clusters; if
// nil, they are not recorded.
func NewGroup(clusters *kube.Clusters, faults *recovery.Component) *Group {
	return &Group{Clusters: clusters, faults: faults, places: semaphore.NewWeighted(ListsAtOnce), open: map[access]*Informer{}}
}

// Open returns the informer of the cluster with a kubeconfig. No requests are made until somebody
// follows it. The caller must close it.
func (g *Group) Open(cluster string, kubeconfig api.Secret) (*Informer, error) {
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

// leave removes a user of an informer, and closes the informer with the last one.
func (g *Group) leave(key access, f *Informer, connection *kube.Connection) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(g.open, key)
		connection.Close() // cancels requests that hang
	}
}

// Informer maintains the nodes and pods of one cluster while somebody follows it.
type Informer struct {
	// Gate holds back requests while the cluster does not respond.
	Gate  *Gate
	Nodes *Table[Node]
	Pods  *Table[Pod]

	cluster string
	core    typedcorev1.CoreV1Interface
	faults  *recovery.Component
	close   func()
	users   int // guarded by the group

	mu        sync.Mutex
	followers []*Follower
	stop      context.CancelFunc // stops what is running
	ended     <-chan struct{}    // closed when it has ended
}

// New returns an informer outside a Group, using the given client.
func New(cluster string, core typedcorev1.CoreV1Interface, faults *recovery.Component) *Informer {
	return newFeed(cluster, core, semaphore.NewWeighted(ListsAtOnce), faults)
}

func newFeed(cluster string, core typedcorev1.CoreV1Interface, places *semaphore.Weighted, faults *recovery.Component) *Informer {
	return &Informer{
		Gate: newGate(places), Nodes: NewTable(NodeOf, sameNode), Pods: NewTable(PodOf, samePod),
		cluster: cluster, core: core, faults: faults, close: func() {},
	}
}

// Close ends the use of an informer.
func (f *Informer) Close() { f.close() }

// Follower receives changes of nodes and pods.
type Follower struct {
	// Changed is called when nodes, pods, or errors about them have changed. It must be quick. It
	// may be nil.
	Changed func()
	// Probes says that the follower reports the state of the cluster to the Gate, and that no
	// requests are made before it does.
	Probes bool
	// Details is nil for followers that only need sums. Without details, pods that use no resources
	// are left out. Only one follower may have details.
	Details *Details
}

// Details is for followers that need individual nodes and pods. Nodes and Pods are called first
// with everything, and then with changes; they must be quick and must not call the informer.
type Details struct {
	// NodeOf and PodOf return what is kept of an object; PodOf also gets the pod's requests.
	NodeOf func(*corev1.Node) any
	PodOf  func(*corev1.Pod, Amount) any
	Nodes  func(iter.Seq[Change[Node]])
	Pods   func(iter.Seq[Change[Pod]])
}

// Follow follows the cluster until leave is called. After leave has returned, the follower is not
// called anymore.
func (f *Informer) Follow(follower Follower) (leave func()) {
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

func (f *Informer) leave(follower *Follower) {
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
		f.Gate.Set(nil) // nobody reports the cluster's state anymore
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

// restart lists and watches what the followers need from scratch. The caller holds the lock.
func (f *Informer) restart() {
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

// forget drops the data when nobody follows the cluster.
func (f *Informer) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.followers) == 0 {
		f.Nodes.forget()
		f.Pods.forget()
	}
}

// run lists and watches until ctx is done.
func (f *Informer) run(ctx context.Context) {
	f.mu.Lock()
	if ctx.Err() != nil { // the followers have changed in the meantime
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

// become makes the tables keep what the followers need, and returns the pod selector for that. The
// caller holds the lock.
func (f *Informer) become() (selector string) {
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

// Attach makes the tables keep details and report them. Follow does this for followers with
// details.
func (f *Informer) Attach(d Details) {
	f.Nodes.become(nodeWith(d.NodeOf))
	f.Pods.become(podWith(d.PodOf))
	f.Nodes.Tell(d.Nodes)
	f.Pods.Tell(d.Pods)
}

// key returns the cluster's key for logs.
func (f *Informer) key() string { return api.Key{Kind: api.KindCluster, Name: f.cluster}.String() }

// changed notifies all followers.
func (f *Informer) changed() {
	f.mu.Lock()
	followers := f.followers
	f.mu.Unlock()
	for _, follower := range followers {
		if follower.Changed != nil {
			follower.Changed()
		}
	}
}
