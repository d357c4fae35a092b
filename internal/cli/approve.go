package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/printable"
)

func (s *session) approveCommand() *cobra.Command {
	var revision, step int64
	var all bool
	cmd := &cobra.Command{
		Use: "approve KIND NAME...", Short: "Approve the step that a change of a decision waits for", Args: cobra.MinimumNArgs(2),
		Long: `Approve the current step of the rollout of placements or workloads, or with --all every
step. If a rollout has stopped because too many clusters have failed, the step is tried
again. With --revision and --step, exactly that is approved, or nothing if something else
is under way.`,
		Example:           "  schedulerctl approve placement shop/web\n  schedulerctl approve placement shop/web --revision 3 --step 2",
		ValidArgsFunction: s.completeObjects(staged),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch flags := cmd.Flags(); {
			case all && flags.Changed("step"):
				return usage("--all and --step contradict each other: use one of them")
			case flags.Changed("revision") && revision < 1:
				return usage("--revision %d must be at least 1", revision)
			case flags.Changed("step") && step < 1:
				return usage("--step %d must be at least 1", step)
			}
			return s.eachObject(cmd.Context(), args, func(server *client.Client, info api.KindInfo, key api.Key, _ int) error {
				if !staged(info) {
					return usage("a %s does not change in steps", singular(info))
				}
				before, err := server.Get(cmd.Context(), key)
				if err != nil {
					return err
				}
				approval := api.RolloutApproval{Revision: revision, Step: step}
				if r := api.RolloutOf(before); r != nil {
					if revision == 0 {
						approval.Revision = r.Revision
					}
					if step == 0 && !all {
						approval.Step = r.Step
					}
				} else if revision == 0 {
					return fmt.Errorf("%s does not change in steps at present: there is nothing to approve", key)
				}
				after, err := server.Approve(cmd.Context(), key, approval)
				if err != nil {
					return err
				}
				what := fmt.Sprintf("step %d", approval.Step)
				if approval.Step == 0 {
					what = "every step"
				}
				now, _ := clustersOf(after)
				_, err = fmt.Fprintln(s.Stdout, printable.Text(fmt.Sprintf("%s: approved %s of rollout %d, runs on %s", key, what, approval.Revision, orNone(now))))
				return err
			})
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "`revision` of the rollout; without it, the one under way")
	cmd.Flags().Int64Var(&step, "step", 0, "`step` up to which is approved; without it, the current one")
	cmd.Flags().BoolVar(&all, "all", false, "approve every step")
	return cmd
}

// staged reports whether decisions of a kind can change in steps.
func staged(info api.KindInfo) bool { return slices.Contains(api.StagedKinds, info.Kind) }
