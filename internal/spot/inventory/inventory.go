// Package inventory maintains what the split between on-demand and spot nodes needs to know about
// one Kubernetes cluster: nodes, workloads, and a few numbers of each pod. It assigns node types to
// new pods.
package inventory

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Key identifies a Deployment or StatefulSet in the cluster.
type Key struct{ Kind, Namespace, Name string }

// Options of an Inventory. All are required except functions that have a default.
type Options struct {
	// Client lists, watches and gets what Informer does not have.
	Client kubernetes.Interface
	// Informer has the nodes and pods.
	Informer *informer.Informer
	// Label is the node label for types.
	Label spot.Label
	// Exclude are namespaces in which nothing is split, in addition to the system's.
	Exclude []string
	// Off says that spot is disabled.
	Off bool
	// ReturnAfter is how long spot nodes must have been available again before pods return.
	ReturnAfter time.Duration
	// Changed is called for each workload with changes. It is called with the lock of the inventory
	// held: it must be quick and must not call back.
	Changed func(Key)
	// NodeEnds is called in the same way for each node whose termination was announced.
	NodeEnds func(node string)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Inventory is what is known of a cluster.
type Inventory struct {
	Options
	sorts   []*sort
	details informer.Details
	synced  chan struct{} // closed when everything has been listed once
	end     context.CancelCauseFunc

	// mu guards the fields below. No requests are made while it is held.
	mu           sync.Mutex
	asked        map[Key]Asked
	leftOut      map[string]struct{} // namespaces excluded by their labels
	workloads    map[Key]*workload
	replicaSets  map[types.UID]*replicaSet
	setsOf       map[types.UID]map[types.UID]*replicaSet // by Deployment
	pods         map[types.UID]*pod
	podsOf       map[types.UID]map[types.UID]*pod // by controller
	nodes        map[string]*node
	tainted      map[types.UID]map[string]time.Time // when taints without a time were first seen
	podsOn       map[string]map[types.UID]*pod
	used         map[string]amount           // amounts used by podsOn
	seen         uint64                      // number of pods seen
	reservations map[types.UID][]reservation // by controller
	spotGrown    time.Time                   // when the last usable spot node was added
}

// Asked is what a workload object of the server requests for a workload in the cluster.
type Asked struct {
	Distribution api.DistributionSpec
}

// New returns an empty Inventory.
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

// Ask sets the requests of all workload objects of the server for this cluster.
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

// add adds a value to a map of maps.
func add[A, B comparable, V any](m map[A]map[B]V, a A, b B, v V) {
	if m[a] == nil {
		m[a] = map[B]V{}
	}
	m[a][b] = v
}

// drop removes a value from a map of maps.
func drop[A, B comparable, V any](m map[A]map[B]V, a A, b B) {
	delete(m[a], b)
	if len(m[a]) == 0 {
		delete(m, a)
	}
}
