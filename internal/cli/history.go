package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// historyFlags are the flags of history.
type historyFlags struct {
	cluster, since, until string
	limit                 int
	everywhere            bool
}

func (s *session) historyCommand() *cobra.Command {
	var flags historyFlags
	var output *outputFormat
	cmd := &cobra.Command{
		Use: "history [KIND [NAME]]", Short: "Show what decisions have moved, when and why",
		Long: `Show what decisions have moved, when and why, the newest last: of all placements and
workloads, of a kind, or of one object, which need not exist any more.`,
		Example: `  # What moved in the last two hours?
  PROGRAM history --since 2h
  # What did the cluster eu-1 lose and get, and why?
  PROGRAM history --cluster eu-1
  PROGRAM history placement web`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeKinds(recorded), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.limit < 1 {
				return usage("--limit %d must be at least 1", flags.limit)
			}
			server, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			options, err := s.historyOptions(&flags, args)
			if err != nil {
				return err
			}
			entries, gaps, err := readHistory(cmd.Context(), server, options, flags.limit)
			if err != nil {
				return err
			}
			for _, gap := range gaps {
				fmt.Fprintf(s.Stderr, "warning: between the revisions %d and %d, changes may be missing: %s\n", gap.After, gap.Until, termtext.Text(gap.Reason))
			}
			if output.value != outputTable {
				return printDocument(s.Stdout, output.value, entries, false)
			}
			t := historyTable(entries)
			return t.print(s.Environment, s.Stdout)
		},
	}
	cmd.Flags().StringVar(&flags.cluster, "cluster", "", "only what moved to or from this cluster")
	cmd.Flags().StringVar(&flags.since, "since", "", "only what was decided since a time, or in a duration until now: 2026-03-01T12:00:00Z, 24h")
	cmd.Flags().StringVar(&flags.until, "until", "", "only what was decided before a time, or a duration ago")
	cmd.Flags().IntVar(&flags.limit, "limit", 50, "show at most this many, the newest")
	cmd.Flags().BoolVarP(&flags.everywhere, "all-namespaces", "A", false, "show all namespaces, also if --namespace or the context names one")
	output = defineOutput(cmd, "", outputTable, outputJSON, outputYAML)
	return cmd
}

// historyOptions returns what the arguments and flags select.
func (s *session) historyOptions(flags *historyFlags, args []string) (options client.HistoryOptions, err error) {
	options.Cluster, options.Limit = flags.cluster, min(flags.limit, 500)
	for _, flag := range []struct {
		name, text string
		to         *time.Time
	}{{"since", flags.since, &options.Since}, {"until", flags.until, &options.Until}} {
		if flag.text == "" {
			continue
		}
		if ago, err := time.ParseDuration(flag.text); err == nil {
			*flag.to = s.Now().Add(-ago)
		} else if *flag.to, err = time.Parse(time.RFC3339, flag.text); err != nil {
			return options, usage("--%s %q must be a time such as 2026-03-01T12:00:00Z, or a duration such as 24h", flag.name, flag.text)
		}
	}
	if !flags.everywhere {
		options.Namespace = s.connection.used.Namespace
	}
	if len(args) == 0 {
		return options, nil
	}
	info, err := parseKind(args[0])
	if err != nil {
		return options, err
	}
	if !recorded(info) {
		return options, usage("the history has placements and workloads, not a %s", singular(info))
	}
	options.Kind = info.Kind
	if len(args) == 2 {
		key, err := parseKey(info, args[1], s.connection.namespace())
		if err != nil {
			return options, err
		}
		options.Namespace, options.Name = key.Namespace, key.Name
	}
	return options, nil
}

// recorded reports whether decisions of a kind are in the history.
func recorded(info api.KindInfo) bool { return slices.Contains(api.HistoryKinds, info.Kind) }

// readHistory returns the newest entries, the oldest first, and what is missing among them.
func readHistory(ctx context.Context, server *client.Client, options client.HistoryOptions, limit int) (entries []api.HistoryEntry, gaps []api.HistoryGap, err error) {
	entries = []api.HistoryEntry{}
	for page, err := range server.History(ctx, options) {
		if err != nil {
			return nil, nil, err
		}
		entries, gaps = append(entries, page.Items...), append(gaps, page.Gaps...)
		if len(entries) >= limit {
			break
		}
	}
	entries = entries[:min(limit, len(entries))]
	slices.Reverse(entries)
	slices.Reverse(gaps)
	return entries, gaps, nil
}

// historyTable has a line for each entry.
func historyTable(entries []api.HistoryEntry) table {
	t := table{header: []string{"TIME", "REVISION", "OBJECT", "MOVED", "BECAUSE OF"}}
	for i := range entries {
		e := &entries[i]
		cause := "deleted"
		switch {
		case e.Cause != nil:
			cause = causeText(e.Cause, e.Actor)
		case e.After != nil:
			cause = ""
		}
		t.add(e.Time.UTC().Format(time.RFC3339), strconv.FormatInt(e.Revision, 10), string(e.Object.Kind)+" "+e.Object.Path(), movedText(e.Moved), cause)
	}
	return t
}

// movedText says what moved, shortened if it is much.
func movedText(moves []api.Move) string {
	const shown = 3
	var parts []string
	for n, m := range moves {
		if n == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(moves)-n))
			break
		}
		text := cmp.Or(m.From, "none") + " -> " + cmp.Or(m.To, "none")
		if m.Replicas > 0 {
			text = fmt.Sprintf("%d: %s", m.Replicas, text)
		}
		parts = append(parts, text)
	}
	return cmp.Or(strings.Join(parts, ", "), "same clusters")
}
