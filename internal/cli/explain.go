package cli

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// shownCandidates is how many candidates explain shows without --all, besides the chosen ones.
const shownCandidates = 20

func (s *session) explainCommand() *cobra.Command {
	var all bool
	var whyNot, at string
	var output *outputFormat
	cmd := &cobra.Command{
		Use: "explain KIND NAME...", Short: "Say for every candidate why it was chosen, passed over or rejected", Args: cobra.MinimumNArgs(2),
		Long: `Say for every candidate why it was chosen, passed over or rejected, as a matrix: a row
for each candidate, and a column for each part of the score.`,
		Example:           "  PROGRAM explain placement web\n  PROGRAM explain workload shop/api --all\n  PROGRAM explain placement web --why-not eu-3\n  PROGRAM explain placement web --at 20417",
		ValidArgsFunction: s.completeObjects(explained),
		RunE: func(cmd *cobra.Command, args []string) error {
			if whyNot != "" && (all || cmd.Flags().Changed("output")) {
				return usage("--why-not answers with a sentence: it cannot be combined with --all and --output")
			}
			return s.eachObject(cmd.Context(), args, func(server *client.Client, info api.KindInfo, key api.Key, i int) error {
				if !explained(info) {
					return usage("a %s has no decision to explain", singular(info))
				}
				explanation, err := server.ExplainAt(cmd.Context(), key, at)
				if err != nil {
					return err
				}
				if whyNot != "" {
					answer, err := answerWhyNot(key, explanation, whyNot)
					if err == nil {
						_, err = fmt.Fprintln(s.Stdout, termtext.Text(answer))
					}
					return err
				}
				if output.value != outputTable {
					return printDocument(s.Stdout, output.value, explanation, i > 0)
				}
				if i > 0 {
					fmt.Fprintln(s.Stdout) // an error shows with the table
				}
				return s.printExplanation(key, explanation, all)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, fmt.Sprintf("show all candidates, not only the chosen ones and %d others", shownCandidates))
	cmd.Flags().StringVar(&whyNot, "why-not", "", "say in one sentence why this candidate was not chosen")
	cmd.Flags().StringVar(&at, "at", "", "explain the decision as it was, at a revision that history shows or at a time (2026-03-01T12:00:00Z), as long as the store keeps it")
	output = defineOutput(cmd, "", outputTable, outputJSON, outputYAML, outputJSONPath)
	return cmd
}

// answerWhyNot says in one sentence why a candidate was not chosen.
func answerWhyNot(key api.Key, x *api.Explanation, name string) (string, error) {
	i := slices.IndexFunc(x.Candidates, func(c api.Candidate) bool { return c.Cluster == name })
	if i < 0 {
		return "", usage("--why-not: %q is not a candidate of %s: --all shows the candidates", name, key)
	}
	c := x.Candidates[i]
	switch {
	case c.Selected:
		return fmt.Sprintf("%s is chosen for %s", name, key), nil
	case c.Reason != "":
		return fmt.Sprintf("%s is not chosen for %s: %s", name, key, c.Reason), nil
	case x.Margin != nil && x.Margin.To == name && x.Margin.Margin >= 0:
		return fmt.Sprintf("%s is not chosen for %s: to replace %s, its score must rise by %s", name, key, x.Margin.From, number(&x.Margin.Margin)), nil
	case c.Score != nil:
		return fmt.Sprintf("%s is not chosen for %s: it fits, but others have a better score than %s", name, key, number(c.Score)), nil
	}
	return fmt.Sprintf("%s is not chosen for %s: it fits, but others are better", name, key), nil
}

// printExplanation prints the matrix of a decision.
func (s *session) printExplanation(key api.Key, x *api.Explanation, all bool) error {
	now := s.Now()
	say := func(format string, args ...any) {
		for i, arg := range args {
			if text, ok := arg.(string); ok {
				args[i] = termtext.Text(text)
			}
		}
		fmt.Fprintf(s.Stdout, format, args...) // an error shows with the table
	}
	say("%s: %s\n", key.String(), x.Summary)
	if x.Policy != "" {
		say("Policy: %s (%s)\n", x.Policy, x.PolicyReason)
	}
	for _, a := range x.Affinities {
		say("Affinity group %q: %s. %s\n", a.AffinityName, a.Result, a.Message)
	}
	if x.Kept != "" {
		say("Kept because of %s, although a new decision might differ\n", x.Kept)
	}
	if m := x.Margin; m != nil && m.Margin < 0 {
		say("Margin: the decision moves from %s to %s when it may: the score of %s is %s more than that takes\n", m.From, m.To, m.To, number(new(-m.Margin)))
	} else if m != nil {
		say("Margin: the decision moves from %s to %s if the score of %s rises by %s\n", m.From, m.To, m.To, number(&m.Margin))
	}
	if n := x.NearestMiss; n != nil {
		without := n.Filter
		if n.On != "" && n.On != n.Filter {
			without += " " + n.On
		}
		say("Nearest miss: without %s, %s more would fit\n", without, strconv.Itoa(n.Count))
	}
	if x.NextAt != nil {
		say("May change through time alone in %s\n", age(&now, *x.NextAt))
	}
	shown, hidden := candidatesToShow(x.Candidates, all)
	if len(shown) == 0 {
		return nil
	}
	say("\n")
	t := explanationTable(shown)
	if err := t.print(s.Environment, s.Stdout); err != nil {
		return err
	}
	if hidden > 0 {
		say("... %s more; --all shows them\n", strconv.Itoa(hidden))
	}
	return nil
}

// candidatesToShow returns the chosen candidates, then the best of the others.
func candidatesToShow(candidates []api.Candidate, all bool) (shown []api.Candidate, hidden int) {
	ordered := slices.Clone(candidates)
	slices.SortStableFunc(ordered, func(a, b api.Candidate) int { return standing(a) - standing(b) })
	if all {
		return ordered, 0
	}
	others := 0
	for _, c := range ordered {
		if !c.Selected {
			if others++; others > shownCandidates {
				hidden++
				continue
			}
		}
		shown = append(shown, c)
	}
	return shown, hidden
}

// standing orders candidates: chosen, those that fit, rejected. Within each, the order is that of
// the explanation.
func standing(c api.Candidate) int {
	switch {
	case c.Selected:
		return 0
	case c.Filter == "":
		return 1
	}
	return 2
}

func explanationTable(candidates []api.Candidate) table {
	var parts []string
	var replicas, scores bool
	for _, c := range candidates {
		replicas = replicas || c.Replicas != nil
		scores = scores || c.Score != nil
		for _, part := range c.Scores {
			if !slices.Contains(parts, part.Name) {
				parts = append(parts, part.Name)
			}
		}
	}
	t := table{header: []string{"CANDIDATE", "DECISION"}}
	if replicas {
		t.header = append(t.header, "REPLICAS", "ROOM")
	}
	if scores {
		t.header = append(t.header, "SCORE")
	}
	for _, part := range parts {
		t.header = append(t.header, termtext.Text(part))
	}
	t.header = append(t.header, "WHY")
	for _, c := range candidates {
		cells := []string{c.Cluster, decisionOn(c)}
		if replicas {
			cells = append(cells, count(c.Replicas), count(c.Available))
		}
		if scores {
			cells = append(cells, number(c.Score))
		}
		for _, part := range parts {
			cells = append(cells, shareOf(c, part))
		}
		why := c.Reason
		if why == "" && c.Current && !c.Selected {
			why = "was chosen before"
		}
		t.add(append(cells, why)...)
	}
	return t
}

// decisionOn says what became of a candidate.
func decisionOn(c api.Candidate) string {
	switch {
	case c.Selected && c.Rank > 0:
		return "chosen, rank " + strconv.FormatInt(c.Rank, 10)
	case c.Selected:
		return "chosen"
	case c.Filter != "":
		return "rejected by " + c.Filter
	case c.Rank > 0:
		return "rank " + strconv.FormatInt(c.Rank, 10)
	}
	return "passed over"
}

// shareOf returns what a part adds to the score of a candidate, with the raw value.
func shareOf(c api.Candidate, name string) string {
	for _, part := range c.Scores {
		if part.Name != name {
			continue
		}
		if part.Reason != "" {
			return part.Reason
		}
		text := number(&part.Share)
		if part.Raw != nil {
			text += " (" + number(part.Raw) + ")"
		}
		return text
	}
	return ""
}

func count(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
