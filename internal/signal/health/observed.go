package health

import (
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Answer is what the API server of a Kubernetes cluster reported about itself.
type Answer int

const (
	// AnswerUnasked: it was not probed; something watched has changed.
	AnswerUnasked Answer = iota
	// AnswerReady: it is ready.
	AnswerReady
	// AnswerNotReady: it responds and reports that it is not ready.
	AnswerNotReady
	// AnswerNone: it cannot be reached, or rejects the credentials.
	AnswerNone
)

// Observation is an observation of a Kubernetes cluster.
type Observation struct {
	Answer  Answer
	Message string // explains the answer
	// Condition says whether everything is watched; its type is not set. Without a status, the
	// condition stays unchanged.
	Condition api.Condition
	Facts     Facts
}

// Facts are observed facts about a cluster. Nil or empty values are unknown.
type Facts struct {
	Nodes     *NodeFacts
	Allocated api.Quantities
	// Pods changes with every change of the set of pods.
	Pods            uint64
	CustomResources []string
	APIResources    []string
	Version         string
}

// NodeFacts are facts about the nodes of a cluster.
type NodeFacts struct {
	// Total is the number of nodes; Ready are those without pressure, NotReady and Pressure the
	// others.
	Total, Ready, NotReady, Pressure int64
	Capacity, Allocatable            api.Quantities
	Region                           string
	Zones                            []string
}

// Up to this share of the nodes may be unhealthy without the cluster counting as unhealthy: the
// others take the workloads, and their capacity is observed. If more than half are, something is
// wrong with the cluster.
const (
	maxNotReady = 0.5
	maxPressure = 0.5
)

// Reasons of the Ready condition of an observed cluster.
const (
	reasonObserved      = "Observed"
	reasonUnreachable   = "Unreachable"
	reasonNodesNotReady = "NodesNotReady"
	reasonNodePressure  = "NodesUnderPressure"
)

// judge derives the state of the cluster from an observation. A cluster without nodes is healthy:
// it may add nodes when they are needed.
func (o *Observation) judge() (result outcome, reason, message string) {
	above := func(n int64, share float64) bool { return float64(n) > share*float64(o.Facts.Nodes.Total) }
	switch {
	case o.Answer == AnswerNone:
		return unreachable, reasonUnreachable, o.Message
	case o.Answer == AnswerNotReady:
		return refused, reasonProbeFailed, o.Message
	case o.Facts.Nodes != nil && above(o.Facts.Nodes.Pressure, maxPressure):
		return pressed, reasonNodePressure, "more than half of the nodes are under pressure"
	case o.Facts.Nodes != nil && above(o.Facts.Nodes.NotReady, maxNotReady):
		return notReady, reasonNodesNotReady, "more than half of the nodes are not ready"
	}
	return success, reasonObserved, o.Message
}

// ObserveInterval returns the interval between probes of a cluster with a kubeconfig.
func ObserveInterval(c *api.Cluster) time.Duration { return checkOf(c, &c.Status).interval }

// Observed accepts an observation of a cluster with a kubeconfig. It is ignored if the kubeconfig
// is not the cluster's current one.
func (m *Monitor) Observed(name string, kubeconfig api.Secret, o Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[name]
	if c == nil || c.check.kubeconfig != kubeconfig {
		return
	}
	now := m.Now()
	c.learn(o.Facts, now)
	if o.Condition.Status != "" {
		o.Condition.Type = api.ConditionObserved
		api.SetCondition(&c.wanted.Conditions, o.Condition, now)
	}
	if c.check.mode == observed && o.Answer != AnswerUnasked {
		before := c.health.state
		result, reason, message := o.judge()
		c.become(c.health.after(result, c.check.thresholds), reason, message, now)
		if c.health.state != before {
			m.Logger.Info("cluster", "name", c.name, "state", c.health.state, "reason", reason, "observed", message)
		}
		c.unprobed = false
	}
	c.wanted.ObservedGeneration = c.object.Metadata.Generation
	awaited := c.unobserved
	c.unobserved = false
	if awaited || c.dirty() {
		c.flushAt = now
		m.schedule(c)
	}
}

// learn sets observed facts in the wanted status.
func (c *cluster) learn(f Facts, now time.Time) {
	s := &c.wanted
	if n := f.Nodes; n != nil {
		s.Nodes = &api.ClusterNodes{Total: n.Total, Ready: n.Ready, Pressure: n.Pressure}
		c.takeSize(n.Capacity, n.Allocatable, now.UTC())
		s.Region, s.Zones = n.Region, n.Zones
	}
	if f.Allocated != nil {
		// Another set of pods reflects decisions made since, even if the sum is the same.
		moved := c.pods != 0 && c.pods != f.Pods
		allocated := s.Allocated.Succeed(f.Allocated)
		if moved || !maps.Equal(s.Allocated, allocated) {
			at := now.UTC()
			s.Allocated, s.CapacityReportedAt = allocated, &at
		}
		c.pods = f.Pods
	}
	if f.CustomResources != nil {
		s.CustomResources = orNone(f.CustomResources)
	}
	if f.APIResources != nil {
		s.APIResources = orNone(f.APIResources)
	}
	if f.Version != "" {
		s.KubernetesVersion = f.Version
	}
}

// orNone returns nil for an empty list, as after decoding.
func orNone(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

// forget removes what was observed with a kubeconfig that the cluster no longer has from the wanted
// status.
func (c *cluster) forget() {
	s := &c.wanted
	if c.check.kubeconfig != (api.Secret{}) || api.FindCondition(s.Conditions, api.ConditionObserved) == nil {
		return
	}
	api.RemoveCondition(&s.Conditions, api.ConditionObserved)
	s.Capacity, s.Allocatable, s.Allocated, s.GoneResources = nil, nil, nil, nil
	s.Conditions = api.WithResourcesGone(s.Conditions, "", "", nil)
	s.Region, s.Zones, s.Nodes, s.KubernetesVersion = "", nil, nil, ""
	s.CustomResources, s.APIResources = nil, nil
	c.pods = 0
}
