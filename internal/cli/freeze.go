package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/printable"
)

func (s *session) freezeCommand() *cobra.Command {
	var reason, until string
	var lasting time.Duration
	var namespaces []string
	cmd := &cobra.Command{
		Use: "freeze", Short: "Stop all moves that nothing forces", Args: cobra.NoArgs,
		Long: `Stop all moves that nothing forces, until a time, or until thaw. Decisions still leave
clusters that are offline, deleted or tainted, and still follow changes of their spec:
terraform apply goes on working.`,
		Example: "  schedulerctl freeze --reason incident-4711 --for 2h\n  schedulerctl freeze --reason holidays --until 2027-01-04T08:00:00Z --namespaces shop,bank",
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := api.FreezeRequest{FreezeSpec: api.FreezeSpec{Reason: reason}, Namespaces: namespaces}
			switch {
			case reason == "":
				return usage("--reason is required: everybody who reads a decision that is held sees it")
			case until != "" && lasting != 0:
				return usage("--for and --until say the same thing: use one of them")
			case lasting <= 0 && cmd.Flags().Changed("for"):
				return usage("--for %s must be more than 0; without it, the freeze lasts until thaw", lasting)
			case until != "":
				at, err := time.Parse(time.RFC3339, until)
				if err != nil {
					return usage("--until %q is not a time: write RFC 3339, such as 2027-01-04T08:00:00Z", until)
				}
				request.Until = &at
			}
			server, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			if lasting > 0 { // by the clock that ends it
				info, err := server.Server(cmd.Context())
				if err != nil {
					return err
				}
				at := info.Now.Add(lasting).UTC().Truncate(time.Second)
				request.Until = &at
			}
			if err := server.Freeze(cmd.Context(), request); err != nil {
				return err
			}
			end := "until thaw"
			if request.Until != nil {
				end = "until " + request.Until.UTC().Format(time.RFC3339)
			}
			_, err = fmt.Fprintln(s.Stdout, printable.Text(frozen(namespaces)+" frozen "+end))
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for everybody who reads a decision that is held (required)")
	cmd.Flags().StringVar(&until, "until", "", "when the freeze ends, in RFC 3339")
	cmd.Flags().DurationVar(&lasting, "for", 0, "how long it lasts")
	cmd.Flags().StringSliceVar(&namespaces, "namespaces", nil, "namespaces to freeze; everything, if omitted")
	return cmd
}

func (s *session) thawCommand() *cobra.Command {
	var namespaces []string
	cmd := &cobra.Command{
		Use: "thaw", Short: "End a freeze", Args: cobra.NoArgs,
		Long: "End a freeze. What was held is decided again, with the figures of now.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := server.Thaw(cmd.Context(), namespaces); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(s.Stdout, printable.Text(frozen(namespaces)+" thawed")); err != nil {
				return err
			}
			return s.stillFrozen(cmd.Context(), server, namespaces)
		},
	}
	cmd.Flags().StringSliceVar(&namespaces, "namespaces", nil, "namespaces to thaw; the freeze of everything, if omitted")
	return cmd
}

// stillFrozen prints the freezes that hold after a thaw: those with other names, and that of
// everything after the thaw of namespaces.
func (s *session) stillFrozen(ctx context.Context, server *client.Client, namespaces []string) error {
	info, err := server.Server(ctx)
	if err != nil {
		return err
	}
	for _, f := range info.Freezes {
		where := []string{f.Namespace}
		if f.Namespace == "" {
			where = nil
		} else if len(namespaces) > 0 && !slices.Contains(namespaces, f.Namespace) {
			continue
		}
		end := "until thaw"
		switch {
		case f.Until != nil:
			end = "until " + f.Until.UTC().Format(time.RFC3339)
		case f.Name != api.FreezeName:
			end = "until the freeze " + f.Name + " is deleted"
		}
		if _, err := fmt.Fprintln(s.Stdout, printable.Text(fmt.Sprintf("%s still frozen %s: %s", frozen(where), end, f.Reason))); err != nil {
			return err
		}
	}
	return nil
}

// frozen names what a freeze is about.
func frozen(namespaces []string) string {
	switch len(namespaces) {
	case 0:
		return "everything is"
	case 1:
		return "namespace " + namespaces[0] + " is"
	}
	return "namespaces " + strings.Join(namespaces, ", ") + " are"
}
