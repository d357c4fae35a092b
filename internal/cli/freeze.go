package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// freezePath is where freezes begin and end.
const freezePath = "/v1/freeze"

func (s *session) freezeCommand() *cobra.Command {
	var everywhere bool
	var reason, until string
	var lasting time.Duration
	cmd := &cobra.Command{
		Use: "freeze --reason TEXT", Short: "Keep decisions where they are from now on", Args: cobra.NoArgs,
		Long: `Keep the decisions of a namespace where they are, until the freeze ends. What has to move
moves all the same: clusters that are offline, evict or no longer fit, workloads that a
higher priority displaces, and decisions for a changed spec.

A freeze is the move window "freeze", which get, describe and delete show and end, too.`,
		Example: "  PROGRAM freeze --reason 'incident 42' --for 2h\n  PROGRAM freeze --all-namespaces --reason holidays --until 2026-12-27T00:00:00Z",
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := api.Freeze{Reason: reason}
			switch {
			case reason == "":
				return usage("--reason: say why, for those who wonder tomorrow")
			case lasting < 0:
				return usage("--for: %s must not be negative", lasting)
			case lasting > 0 && until != "":
				return usage("--for and --until: name one of them")
			case lasting > 0:
				end := s.Now().Add(lasting).UTC().Truncate(time.Second)
				request.Until = &end
			case until != "":
				end, err := time.Parse(time.RFC3339, until)
				if err != nil {
					return usage("--until: %q is not a time, such as 2026-12-27T00:00:00Z", until)
				}
				request.Until = &end
			}
			return s.freeze(cmd.Context(), request, everywhere)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "freeze the decisions of all namespaces")
	flags.StringVar(&reason, "reason", "", "why; conditions and explanations quote it")
	flags.DurationVar(&lasting, "for", 0, "how long the freeze lasts, such as 2h")
	flags.StringVar(&until, "until", "", "when the freeze ends by itself")
	return cmd
}

func (s *session) freeze(ctx context.Context, request api.Freeze, everywhere bool) error {
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if !everywhere {
		request.Namespace = s.connection.namespace()
	}
	var window api.MoveWindow
	if err := server.Call(ctx, http.MethodPost, freezePath, &request, &window); err != nil {
		return err
	}
	end := "until it is thawed"
	if window.Spec.EndsAt != nil {
		end = "until " + window.Spec.EndsAt.UTC().Format(time.RFC3339)
	}
	_, err = fmt.Fprintln(s.Stdout, termtext.Text(fmt.Sprintf("%s frozen %s", frozen(request.Namespace), end)))
	return err
}

func (s *session) thawCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use: "thaw", Short: "End a freeze", Args: cobra.NoArgs,
		Long: "End the freeze of a namespace, or of all. What it held is decided again, by the figures of now.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			namespace := ""
			if !everywhere {
				namespace = s.connection.namespace()
			}
			path := freezePath
			if namespace != "" {
				path += "?namespace=" + url.QueryEscape(namespace)
			}
			if err := server.Call(cmd.Context(), http.MethodDelete, path, nil, nil); err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.Stdout, termtext.Text(frozen(namespace)+" thawed"))
			return err
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "end the freeze of all namespaces")
	return cmd
}

// frozen names what a freeze is about.
func frozen(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}
