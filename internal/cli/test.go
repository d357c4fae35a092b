package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/printable"
)

func (s *session) testCommand() *cobra.Command {
	return &cobra.Command{
		Use: "test notification NAME...", Short: "Send a test event to the destination of a notification", Args: cobra.MinimumNArgs(2),
		Long: `Send an event that says that it is a test to the destination of a notification, and show
what the destination answers. It does with it what it does with any other event: a test
starts a run or a pipeline.`,
		Example:           "  schedulerctl test notification shop/moves",
		ValidArgsFunction: s.completeObjects(notifies),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.eachObject(cmd.Context(), args, func(server *client.Client, info api.KindInfo, key api.Key, _ int) error {
				if !notifies(info) {
					return usage("a %s tells nobody anything: only notifications can be tested", singular(info))
				}
				test, err := server.SendTest(cmd.Context(), key)
				if err != nil {
					return err
				}
				if test.Result != api.DeliveryDone {
					return fmt.Errorf("%s: %s", key, test.Message)
				}
				_, err = fmt.Fprintln(s.Stdout, printable.Text(fmt.Sprintf("%s: the destination accepted the test %s (status %d)", key, test.ID, test.Code)))
				return err
			})
		},
	}
}

// notifies reports whether objects of a kind have a destination.
func notifies(info api.KindInfo) bool { return info.Kind == api.KindNotification }
