package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/dispatch"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/profiles"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/publish"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/refresh"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
)

// checkGitOps validates the settings of the cluster of GitOps controllers.
func (c *config) checkGitOps(wrong func(format string, args ...any)) {
	if len(c.GitOpsDecisions) > 0 && !c.hasHub() {
		wrong("gitops-decisions: requires gitops-kubeconfig-file or gitops-in-cluster, which say into which cluster")
	}
	if c.GitOpsProfiles && !c.hasHub() {
		wrong("gitops-cluster-profiles: requires gitops-kubeconfig-file or gitops-in-cluster, which say from which cluster")
	}
	if c.GitOpsMultiKueue && !c.hasHub() {
		wrong("gitops-multikueue: requires gitops-kubeconfig-file or gitops-in-cluster, which say in which cluster")
	}
	for _, name := range c.GitOpsDecisions {
		if !slices.Contains(publish.APIs, publish.API(name)) {
			wrong("gitops-decisions: %q is not one of %s, %s", name, publish.Multicluster, publish.OCM)
		}
	}
	if c.GitOpsKubeconfigFile == "" {
		return
	}
	if c.GitOpsInCluster {
		wrong("gitops-in-cluster: must not be set together with gitops-kubeconfig-file: both say which cluster")
	}
	if _, err := c.gitOpsKubeconfig(); err != nil {
		wrong("gitops-kubeconfig-file: %w", err)
	}
}

// gitOpsKubeconfig reads the kubeconfig, which may have been renewed.
func (c *config) gitOpsKubeconfig() (api.Secret, error) {
	text, err := os.ReadFile(c.GitOpsKubeconfigFile)
	if err != nil {
		return api.Secret{}, err
	}
	kubeconfig := api.NewSecret(string(text))
	_, err = kube.Load(kubeconfig)
	return kubeconfig, err
}

// hasHub reports whether there is a cluster of GitOps controllers, the hub.
func (c *config) hasHub() bool { return c.GitOpsKubeconfigFile != "" || c.GitOpsInCluster }

// hubPart works on the hub while this server leads.
type hubPart struct {
	name string
	// fails says in a readiness check that it does not work.
	fails string
	hubWorker
}

// hubWorker is what a hubPart does.
type hubWorker interface {
	Run(ctx context.Context) error
	// Failure returns why it does not work, or nil.
	Failure() error
	Collectors() []prometheus.Collector
}

// newHubParts returns what works on the hub during a term that began at a revision; none without a
// hub.
func (s *server) newHubParts(began int64) []hubPart {
	if !s.config.hasHub() {
		return nil
	}
	access := hub.Access{Clusters: s.clusters}
	if !s.config.GitOpsInCluster {
		access.Kubeconfig = s.config.gitOpsKubeconfig
	}
	parts := []hubPart{{"gitops", "GitOps controllers are not told about decisions", refresh.New(refresh.Options{
		Fleet: s.fleet, Open: access.Open, Faults: s.faults.Component("gitops"), Logger: s.logger, Now: time.Now,
	})}}
	if s.config.GitOpsProfiles {
		parts = append(parts, hubPart{"hub profiles", "ClusterProfiles are not read from the Kubernetes hub", profiles.New(profiles.Options{
			Fleet: s.fleet, Since: began, Store: s.store, Codec: s.codec, Open: access.Open, Now: time.Now, Faults: s.faults.Component("hub profiles"), Logger: s.logger,
		})})
	}
	if len(s.config.GitOpsDecisions) > 0 {
		o := publish.Options{Fleet: s.fleet, Since: began, Store: s.store.Identity(), Open: access.Open, Faults: s.faults.Component("hub decisions"), Logger: s.logger}
		for _, name := range s.config.GitOpsDecisions {
			if !slices.Contains(o.APIs, publish.API(name)) {
				o.APIs = append(o.APIs, publish.API(name))
			}
		}
		parts = append(parts, hubPart{"hub decisions", "decisions are not written to the Kubernetes hub", publish.New(o)})
	}
	if s.config.GitOpsMultiKueue {
		parts = append(parts, hubPart{"hub workloads", "no clusters are nominated for Workloads of Kueue in the Kubernetes hub", dispatch.New(dispatch.Options{
			Fleet: s.fleet, Since: began, Open: access.Open, Faults: s.faults.Component("hub workloads"), Logger: s.logger,
		})})
	}
	return parts
}
