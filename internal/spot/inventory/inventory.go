// Package inventory knows what there is in one Kubernetes cluster, as far as the split
// over on-demand and spot nodes needs it: nodes, workloads, and a few numbers of each
// pod. It says which nodes a new pod is for.
package inventory

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Key names a Deployment or StatefulSet of the cluster.
type Key struct{ Kind, Namespace, Name string }

// Options of an Inventory. All are required but the functions that have a default.
type Options struct {
	// Client lists, watches and gets what Feed does not have.
	Client kubernetes.Interface
	// Feed has the nodes and pods.
	Feed *feed.Feed
	// Label is how nodes say of which type they are.
	Label spot.Label
	// Exclude are namespaces in which nothing is split, besides those of the system.
	Exclude []string
	// Off says that no workload is split any more.
	Off bool
	// ReturnAfter is how long there have to be spot nodes again before pods return.
	ReturnAfter time.Duration
	// Changed is told of each workload about which something is new. It is called
	// under the lock of the inventory: it must be quick and not ask back.
	Changed func(Key)
	// NodeEnds is told of each node that announced its end, likewise.
	NodeEnds func(node string)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Inventory is what is known of a cluster.
type Inventory struct {
	Options
	sorts   []*sort
	details feed.Details
	synced  chan struct{} // closed when everything has been listed once
	end     context.CancelCauseFunc

	// mu guards all that follows. Nothing is asked of the cluster under it.
	mu           sync.Mutex
	asked        map[Key]Asked
	leftOut      map[string]struct{} // namespaces, by their labels
	workloads    map[Key]*workload
	replicaSets  map[types.UID]*replicaSet
	setsOf       map[types.UID]map[types.UID]*replicaSet // by the Deployment
	pods         map[types.UID]*pod
	podsOf       map[types.UID]map[types.UID]*pod // by the controller
	nodes        map[string]*node
	tainted      map[types.UID]map[string]time.Time // when taints of nodes were first seen that do not say when
	podsOn       map[string]map[types.UID]*pod
	used         map[string]amount           // what those of podsOn take
	seen         uint64                      // counts the pods that came
	reservations map[types.UID][]reservation // by the controller
	spotGrown    time.Time                   // when the last of the spot nodes came that take pods
}

// Asked is what a workload object of the server asks for a workload of the cluster.
type Asked struct {
	Distribution api.DistributionSpec
}

// New makes an Inventory that knows nothing yet.
func New(o Options) *Inventory {
	if o.Now == nil {
		o.Now = time.Now
	}
	i := &Inventory{
		Options: o, synced: make(chan struct{}), end: func(error) {}, asked: map[Key]Asked{}, leftOut: map[string]struct{}{},
		workloads: map[Key]*workload{}, replicaSets: map[types.UID]*replicaSet{}, setsOf: map[types.UID]map[types.UID]*replicaSet{},
		pods: map[types.UID]*pod{}, podsOf: map[types.UID]map[types.UID]*pod{},
		nodes: map[string]*node{}, tainted: map[types.UID]map[string]time.Time{}, podsOn: map[string]map[types.UID]*pod{}, used: map[string]amount{}, reservations: map[types.UID][]reservation{},
	}
	i.followNamespaces()
	i.followWorkloads()
	i.followNodesAndPods()
	return i
}

// Ask tells what the server's workload objects ask for in this cluster, all of them.
func (i *Inventory) Ask(asked map[Key]Asked) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.asked
	i.asked = asked
	for key, now := range asked {
		if was, ok := before[key]; !ok || was != now {
			i.Changed(key)
		}
	}
	for key := range before {
		if _, ok := asked[key]; !ok {
			i.Changed(key)
		}
	}
}

// add puts a value into a map of maps.
func add[A, B comparable, V any](m map[A]map[B]V, a A, b B, v V) {
	if m[a] == nil {
		m[a] = map[B]V{}
	}
	m[a][b] = v
}

// drop takes it out.
func drop[A, B comparable, V any](m map[A]map[B]V, a A, b B) {
	delete(m[a], b)
	if len(m[a]) == 0 {
		delete(m, a)
	}
}
