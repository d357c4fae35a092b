package kubernetes

import (
	"maps"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// part is one thing that is watched in a cluster.
type part struct {
	what  string
	known bool
	err   error // why it is not current
}

// parts returns the parts of an observation. What is watched only as a trigger is not included.
func (w *watcher) parts() []part {
	of := func(what string, version uint64, err error) part { return part{what, version > 0, err} }
	nodeVersion, nodeErr := w.informer.Nodes.State()
	podVersion, podErr := w.informer.Pods.State()
	definitionVersion, definitionErr := w.definitions.State()
	w.mu.Lock()
	defer w.mu.Unlock()
	return []part{
		of("nodes", nodeVersion, nodeErr), of("pods", podVersion, podErr),
		of("custom resource definitions", definitionVersion, definitionErr),
		{"API resources", w.types.known, w.types.err},
	}
}

// condition says whether everything is watched and, if not, what is missing. The first failure
// determines the reason.
func condition(parts []part) api.Condition {
	var reason string
	var messages []string
	for _, p := range parts {
		switch {
		case p.err != nil:
			r, message := kube.Describe(p.what, p.err)
			if reason == "" {
				reason = r
			}
			messages = append(messages, message)
		case !p.known:
			messages = append(messages, p.what+": not read yet")
		}
	}
	if len(messages) == 0 {
		return api.Condition{Status: api.ConditionTrue, Reason: api.ReasonObserved, Message: "the cluster is being watched"}
	}
	if reason == "" {
		reason = api.ReasonIncomplete
	}
	return api.Condition{Status: api.ConditionFalse, Reason: reason, Message: strings.Join(messages, "; ")}
}

func (w *watcher) facts() health.Facts {
	var f health.Facts
	var nodes map[informer.UID]informer.Node
	w.informer.Nodes.View(func(rows map[informer.UID]informer.Node) {
		if rows != nil {
			f.Nodes = nodeFacts(rows)
			nodes = maps.Clone(rows)
		}
	})
	w.informer.Pods.View(func(rows map[informer.UID]informer.Pod) {
		if rows != nil {
			f.Allocated = allocated(rows, nodes)
		}
	})
	f.Pods, _ = w.informer.Pods.State()
	w.definitions.View(func(rows map[informer.UID]named) {
		if rows != nil {
			f.CustomResources = names(rows)
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.types.known {
		f.APIResources, f.Version = w.types.texts(), w.types.version
	}
	return f
}
