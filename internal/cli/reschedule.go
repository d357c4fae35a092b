package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

func (s *session) rescheduleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reschedule KIND NAME...", Short: "Ask for a new decision, as if there were none", Args: cobra.MinimumNArgs(2),
		ValidArgsFunction: s.completeObjects(rescheduled),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.eachObject(cmd.Context(), args, func(server *client.Client, info api.KindInfo, key api.Key, _ int) error {
				if !rescheduled(info) {
					return usage("a %s cannot be rescheduled", singular(info))
				}
				before, err := server.Get(cmd.Context(), key)
				if err != nil {
					return err
				}
				after, err := server.Reschedule(cmd.Context(), key)
				if err != nil {
					return err
				}
				from, _ := clustersOf(before)
				to, _ := clustersOf(after)
				_, err = fmt.Fprintln(s.Stdout, termtext.Text(fmt.Sprintf("%s: %s -> %s", key, orNone(from), orNone(to))))
				return err
			})
		},
	}
}
