package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// managedNote says what happens to changes of objects that Terraform manages.
const managedNote = `If the cluster is managed by Terraform, the next plan shows the change and the next
apply undoes it.`

func (s *session) cordonCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cordon CLUSTER...", Short: "Keep new decisions off clusters; existing ones stay", Args: cobra.MinimumNArgs(1),
		Long: "Keep new decisions off clusters; existing ones stay. It sets paused.\n\n" + managedNote, ValidArgsFunction: s.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeClusters(cmd.Context(), args, func(c *api.Cluster) { c.Spec.Paused = true })
		},
	}
}

func (s *session) uncordonCommand() *cobra.Command {
	return &cobra.Command{
		Use: "uncordon CLUSTER...", Short: "Undo cordon and drain", Args: cobra.MinimumNArgs(1),
		Long: "Undo cordon and drain.\n\n" + managedNote, ValidArgsFunction: s.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeClusters(cmd.Context(), args, uncordon)
		},
	}
}

func uncordon(c *api.Cluster) {
	c.Spec.Paused = false
	removeTaint(c, drainTaint.Key, "")
}

func (s *session) taintCommand() *cobra.Command {
	return &cobra.Command{
		Use: "taint CLUSTER TAINT...", Short: "Add or remove taints of a cluster", Args: cobra.MinimumNArgs(2),
		Long: `Add or remove taints of a cluster. KEY=VALUE:EFFECT or KEY:EFFECT adds one or changes its
value, KEY:EFFECT- removes it, and KEY- removes those with any effect. The effects are
NoSelect, NoSelectIfNew and PreferNoSelect, or those of Kubernetes.

` + managedNote,
		Example:           "  PROGRAM taint eu-1 maintenance=disks:NoSelectIfNew\n  PROGRAM taint eu-1 maintenance-",
		ValidArgsFunction: s.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			var changes []func(*api.Cluster)
			for _, text := range args[1:] {
				if rest, remove := strings.CutSuffix(text, "-"); remove {
					key, effect, _ := strings.Cut(rest, ":")
					changes = append(changes, func(c *api.Cluster) { removeTaint(c, key, api.TaintEffect(effect)) })
					continue
				}
				taint, err := parseTaint(text)
				if err != nil {
					return err
				}
				changes = append(changes, func(c *api.Cluster) { addTaint(c, taint) })
			}
			return s.changeClusters(cmd.Context(), args[:1], func(c *api.Cluster) {
				for _, change := range changes {
					change(c)
				}
			})
		},
	}
}

// parseTaint parses KEY[=VALUE]:EFFECT. The server validates the parts.
func parseTaint(text string) (api.Taint, error) {
	i := strings.LastIndex(text, ":")
	if i <= 0 || i == len(text)-1 {
		return api.Taint{}, usage("%q is not a taint: write KEY:EFFECT or KEY=VALUE:EFFECT, such as maintenance:NoSelect", text)
	}
	key, value, _ := strings.Cut(text[:i], "=")
	return api.Taint{Key: key, Value: value, Effect: api.TaintEffect(text[i+1:])}, nil
}

// addTaint adds a taint, or changes the value of the one with the same key and effect.
func addTaint(c *api.Cluster, taint api.Taint) {
	for i, t := range c.Spec.Taints {
		if t.Key == taint.Key && t.Effect == taint.Effect {
			c.Spec.Taints[i].Value = taint.Value
			return
		}
	}
	c.Spec.Taints = append(c.Spec.Taints, taint)
}

// removeTaint removes the taints with a key, and with an effect unless it is empty.
func removeTaint(c *api.Cluster, key string, effect api.TaintEffect) {
	c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t api.Taint) bool {
		return t.Key == key && (effect == "" || t.Effect == effect)
	})
}

// changeAttempts limits how often a change is made again because somebody else changed the cluster.
const changeAttempts = 5

// changeClusters changes clusters, and says what became of each.
func (s *session) changeClusters(ctx context.Context, names []string, change func(*api.Cluster)) error {
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		after, err := changeCluster(ctx, server, name, change)
		if err != nil {
			return err
		}
		text := taints(after)
		if text == "" {
			text = "no taints"
		}
		if _, err := fmt.Fprintln(s.Stdout, termtext.Text(fmt.Sprintf("cluster %s: %s", name, text))); err != nil {
			return err
		}
	}
	return nil
}

func changeCluster(ctx context.Context, server *client.Client, name string, change func(*api.Cluster)) (*api.Cluster, error) {
	for attempt := 1; ; attempt++ {
		cluster, err := getCluster(ctx, server, name)
		if err != nil {
			return nil, err
		}
		change(cluster)
		stored, err := server.Put(ctx, cluster, client.PutOptions{IfMatch: cluster.Metadata.ResourceVersion})
		if client.StatusOf(err) == http.StatusPreconditionFailed && attempt < changeAttempts {
			continue
		}
		if err != nil {
			return nil, err
		}
		if after, ok := stored.(*api.Cluster); ok {
			return after, nil
		}
		return cluster, nil
	}
}
