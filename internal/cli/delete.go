package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

func (s *session) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete KIND NAME...", Short: "Delete objects", Args: cobra.MinimumNArgs(2),
		Long:              "Delete objects. What Terraform manages, the next apply creates again.",
		Example:           "  PROGRAM delete placement shop/web",
		ValidArgsFunction: s.completeObjects(anyKind),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.eachObject(cmd.Context(), args, func(server *client.Client, _ api.KindInfo, key api.Key, _ int) error {
				if err := server.Delete(cmd.Context(), key); err != nil {
					return err
				}
				_, err := fmt.Fprintln(s.Stdout, termtext.Text(key.String()+" deleted"))
				return err
			})
		},
	}
}
