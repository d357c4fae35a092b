package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

func (s *session) topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "top", Short: "Show how full clusters are", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var o topOptions
	clusters := &cobra.Command{
		Use: "clusters", Aliases: []string{"cluster"}, Short: "Show how full clusters are, the fullest first", Args: cobra.NoArgs,
		Long: `Show how full clusters are, the fullest first: what is used or reserved of each
resource, and how many placements and replicas of workloads each cluster has.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.topClusters(cmd.Context(), o) },
	}
	clusters.Flags().StringVarP(&o.selector, "selector", "l", "", "label selector of the clusters")
	clusters.Flags().StringSliceVar(&o.resources, "resources", []string{api.ResourceCPU, api.ResourceMemory}, "resources to show; the first one determines the order")
	clusters.Flags().IntVar(&o.limit, "limit", 0, "show only the fullest (default all)")
	cmd.AddCommand(clusters)
	return cmd
}

type topOptions struct {
	selector  string
	resources []string
	limit     int
}

// usageOf is how full a cluster is.
type usageOf struct {
	cluster *api.Cluster
	// fill is the used part of each resource, 0 to 1, or -1 if it is unknown.
	fill                 []float64
	placements, replicas int64
}

func (s *session) topClusters(ctx context.Context, o topOptions) error {
	if len(o.resources) == 0 {
		return usage("--resources: name at least one")
	}
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	all := map[string]*usageOf{}
	for object, err := range server.List(ctx, api.KindCluster, client.ListOptions{LabelSelector: o.selector}) {
		if err != nil {
			return err
		}
		if cluster, ok := object.(*api.Cluster); ok {
			u := &usageOf{cluster: cluster}
			for _, resource := range o.resources {
				u.fill = append(u.fill, fill(cluster, resource))
			}
			all[cluster.Metadata.Name] = u
		}
	}
	if err := countDecisions(ctx, server, all); err != nil {
		return err
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b *usageOf) int {
		return cmp.Or(cmp.Compare(b.fill[0], a.fill[0]), cmp.Compare(a.cluster.Metadata.Name, b.cluster.Metadata.Name))
	})
	if o.limit > 0 && len(list) > o.limit {
		list = list[:o.limit]
	}
	t := table{header: []string{"NAME", "STATE"}}
	for _, resource := range o.resources {
		t.header = append(t.header, strings.ToUpper(resource), "FREE")
	}
	t.header = append(t.header, "PLACEMENTS", "REPLICAS")
	for _, u := range list {
		cells := []string{u.cluster.Metadata.Name, string(u.cluster.Status.State)}
		for i, resource := range o.resources {
			percent := ""
			if u.fill[i] >= 0 {
				percent = fmt.Sprintf("%.0f%%", u.fill[i]*100)
			}
			cells = append(cells, percent, string(u.cluster.Status.Available[resource]))
		}
		t.add(append(cells, strconv.FormatInt(u.placements, 10), strconv.FormatInt(u.replicas, 10))...)
	}
	return t.print(s.Environment, s.Stdout)
}

// countDecisions counts what clusters have.
func countDecisions(ctx context.Context, server *client.Client, all map[string]*usageOf) error {
	for _, kind := range []api.Kind{api.KindPlacement, api.KindWorkload} {
		for object, err := range server.List(ctx, kind, client.ListOptions{}) {
			if err != nil {
				return err
			}
			switch o := object.(type) {
			case *api.Placement:
				for _, name := range o.Status.Clusters {
					if u := all[name]; u != nil {
						u.placements++
					}
				}
			case *api.Workload:
				for _, c := range o.Status.Clusters {
					if u := all[c.Name]; u != nil {
						u.replicas += c.Replicas
					}
				}
			}
		}
	}
	return nil
}

// fill returns the part of a resource that is used or reserved, or -1 if it is unknown. What is
// reported takes precedence over what is declared.
func fill(c *api.Cluster, resource string) float64 {
	total, ok := c.Status.Allocatable[resource]
	if !ok {
		if total, ok = c.Spec.Allocatable[resource]; !ok {
			return -1
		}
	}
	free, ok := c.Status.Available[resource]
	if !ok {
		return -1
	}
	all, err := total.Milli()
	if err != nil || !all.Positive() {
		return -1
	}
	left, err := free.Milli()
	if err != nil {
		return -1
	}
	return 1 - left.Share(all)
}
