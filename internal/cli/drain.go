package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// drainTaint is what drain adds to a cluster, and uncordon removes.
var drainTaint = api.Taint{Key: "scheduler/drain", Effect: api.EffectNoSelect}

// drainOptions are the flags of drain.
type drainOptions struct {
	dryRun, yes, exitCode bool
	timeout               time.Duration
	output                *outputFormat
}

func (s *session) drainCommand() *cobra.Command {
	var o drainOptions
	cmd := &cobra.Command{
		Use: "drain CLUSTER...", Short: "Move everything off clusters", Args: cobra.MinimumNArgs(1),
		Long: `Move everything off clusters: show what would move and what would stay, ask, set paused and
add the taint ` + taintText(drainTaint.Key, "", drainTaint.Effect) + `, then show each move until nothing is left. If
decisions stay, for example because they tolerate the taint, it says what holds them, and the
exit code is 1.

It can be interrupted at any time: the clusters stay drained and what moves goes on
moving. The same command again continues, and uncordon ends it. After --timeout, it
says what is left and why, and ends with exit code 1.

` + managedNote,
		Example:           "  PROGRAM drain eu-1 --dry-run\n  PROGRAM drain eu-1\n  PROGRAM uncordon eu-1",
		ValidArgsFunction: s.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !o.dryRun && (o.exitCode || cmd.Flags().Changed("output")) {
				return usage("--exit-code and --output are about what would move: they need --dry-run")
			}
			switch {
			case o.timeout < 0:
				return usage("--timeout must not be negative")
			case o.timeout > 0 && o.dryRun:
				return usage("--timeout is about following the moves: it cannot be combined with --dry-run")
			}
			if !o.dryRun && !o.yes && !s.Terminal.asks {
				return usage("drain asks before it moves anything, and there is no terminal to ask: give --yes, or --dry-run to see what would move")
			}
			return s.drain(cmd.Context(), args, o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would move")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, fmt.Sprintf("with --dry-run: exit with %d if decisions would change", exitChanges))
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "follow the moves for at most this long, such as 10m (default: until nothing moves)")
	o.output = defineOutput(cmd, "needs --dry-run", outputTable, outputJSON, outputYAML)
	return cmd
}

func drain(c *api.Cluster) {
	c.Spec.Paused = true
	addTaint(c, drainTaint)
}

// draining is how far a drain is.
type draining struct {
	*session

	server   *client.Client
	clusters []string
	// left are the objects that are still on the clusters, and moving those of them that are going
	// to leave.
	left   map[api.Key]api.Object
	moving map[api.Key]bool
}

func (s *session) drain(ctx context.Context, names []string, o drainOptions) error {
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var request api.Simulation
	var undrained []string
	for _, name := range names {
		cluster, err := getCluster(ctx, server, name)
		if err != nil {
			return err
		}
		before := cluster.Copy()
		drain(cluster)
		if !api.SameIntent(before, cluster) {
			undrained = append(undrained, name)
		}
		if err := addObject(&request, cluster); err != nil {
			return err
		}
	}
	d := &draining{session: s, server: server, clusters: names, left: map[api.Key]api.Object{}, moving: map[api.Key]bool{}}
	f := &following{server: server, kinds: d.kinds(), stderr: s.Stderr, program: s.Program}
	if err := f.list(ctx, func(o api.Object) { d.note(o, false) }); err != nil {
		return err
	}
	result, err := server.Simulate(ctx, request)
	if err != nil {
		return err
	}
	if o.dryRun && o.output.value != outputTable {
		return s.printSimulation(result, o.output.value, o.exitCode)
	}
	if err := d.announce(result); err != nil {
		return err
	}
	switch {
	case o.dryRun && o.exitCode && len(result.Changes) > 0:
		return &changesError{len(result.Changes)}
	case o.dryRun:
		return nil
	case len(undrained) > 0 && !o.yes:
		if err := s.confirm(ctx, fmt.Sprintf("Drain %s?", strings.Join(names, ", "))); err != nil {
			return err
		}
	}
	if err := s.changeClusters(ctx, undrained, drain); err != nil {
		return err
	}
	return d.follow(ctx, f, o.timeout)
}

// kinds are those with decisions for clusters.
func (*draining) kinds() []api.KindInfo {
	placement, _ := api.LookupKind(api.KindPlacement)
	workload, _ := api.LookupKind(api.KindWorkload)
	return []api.KindInfo{placement, workload}
}

// on returns those of the clusters that an object is on, or is leaving.
func (d *draining) on(o api.Object) []string {
	var all []string
	switch o := o.(type) {
	case *api.Placement:
		all = o.Status.Clusters
	case *api.Workload:
		for _, c := range o.Status.Clusters {
			all = append(all, c.Name)
		}
		all = append(all, slices.Collect(maps.Keys(o.Status.Evicting()))...)
	}
	return slices.DeleteFunc(slices.Clone(d.clusters), func(name string) bool { return !slices.Contains(all, name) })
}

// note notes whether an object is still on the clusters.
func (d *draining) note(o api.Object, deleted bool) {
	key := api.KeyOf(o)
	if deleted || len(d.on(o)) == 0 {
		delete(d.left, key)
		return
	}
	d.left[key] = o
}

// announce prints what would move and what would stay.
func (d *draining) announce(result *api.SimulationResult) error {
	losing := 0
	for _, c := range result.Changes {
		if _, ok := d.left[c.Key]; ok && !slices.ContainsFunc(d.clusters, func(name string) bool { return slices.Contains(c.To, name) }) {
			d.moving[c.Key] = true
			if len(c.To) < len(c.From) {
				losing++
			}
		}
	}
	for key, o := range d.left { // interrupted before
		if e := d.eviction(o); e != nil && e.PurgeMode == api.PurgeGracefully {
			d.moving[key] = true
		}
	}
	if err := d.printChanges(result); err != nil {
		return err
	}
	if losing > 0 {
		fmt.Fprintf(d.Stdout, "%s would be on fewer clusters than now\n", counted(losing))
	}
	if stay := len(d.left) - len(d.moving); stay > 0 {
		fmt.Fprintf(d.Stdout, "%s would stay:\n", counted(stay))
		t := table{header: []string{"OBJECT", "ON"}}
		for _, key := range d.keys() {
			if !d.moving[key] {
				t.add(key.String(), strings.Join(d.on(d.left[key]), ","))
			}
		}
		return t.print(d.Environment, d.Stdout)
	}
	return nil
}

// keys returns the objects that are left, in order.
func (d *draining) keys() []api.Key {
	return slices.SortedFunc(maps.Keys(d.left), api.Key.Compare)
}

// eviction returns how a workload is leaving one of the clusters, or nil.
func (d *draining) eviction(o api.Object) *api.Eviction {
	workload, ok := o.(*api.Workload)
	if !ok {
		return nil
	}
	for i, e := range workload.Status.Evictions {
		if slices.Contains(d.clusters, e.Cluster) {
			return &workload.Status.Evictions[i]
		}
	}
	return nil
}

// errDrained ends the following of a drain.
var errDrained = errors.New("what is left does not move")

// follow shows each move until what is left does not move, or the time is over; 0 is any time.
func (d *draining) follow(ctx context.Context, f *following, timeout time.Duration) error {
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err := errDrained
	if d.waits() {
		for _, key := range d.keys() { // since before
			if e := d.eviction(d.left[key]); e != nil {
				fmt.Fprintln(d.Stdout, termtext.Text(leaving(key, e)))
			}
		}
		err = f.follow(limited, func(e api.Event) error {
			if err := d.moved(e); err != nil || d.waits() {
				return err
			}
			return errDrained
		})
	}
	switch {
	case errors.Is(err, errDrained) && len(d.left) == 0:
		_, err := fmt.Fprintln(d.Stdout, termtext.Text("nothing is left on "+strings.Join(d.clusters, ", ")))
		return err
	case errors.Is(err, errDrained):
		if err := d.printHeld(ctx); err != nil {
			return err
		}
		return d.stays()
	case err == nil && ctx.Err() == nil:
		if err := d.printHeld(ctx); err != nil {
			return err
		}
		return d.goesOn("after " + timeout.String())
	case err == nil:
		return d.goesOn("interrupted")
	}
	return err
}

// goesOn says how to go on with a drain that is not followed to its end.
func (d *draining) goesOn(why string) error {
	names := strings.Join(d.clusters, " ")
	return fmt.Errorf("%s: %w, and what moves goes on moving; to follow it again, run %s drain %s; to end the drain, run %s uncordon %s",
		why, d.stays(), d.Program, names, d.Program, names)
}

// waits reports whether something is left that is going to leave.
func (d *draining) waits() bool {
	for key, o := range d.left {
		if e := d.eviction(o); d.moving[key] && (e == nil || e.PurgeMode != api.PurgeNever) {
			return true
		}
	}
	return false
}

// moved notes an event, and shows it if it is about the clusters.
func (d *draining) moved(e api.Event) error {
	key := api.KeyOf(e.Object)
	before := d.left[key]
	d.note(e.Object, e.Type == api.EventDelete)
	if before == nil {
		return nil
	}
	after := d.left[key]
	var line string
	switch eviction := d.eviction(e.Object); {
	case e.Type == api.EventDelete:
		line = key.String() + ": deleted"
	case after == nil:
		to, _ := clustersOf(e.Object)
		line = key.String() + ": now on " + orNone(to)
	case eviction != nil && d.eviction(before) == nil:
		line = leaving(key, eviction)
	default:
		return nil
	}
	_, err := fmt.Fprintln(d.Stdout, termtext.Text(line))
	return err
}

// leaving says that a workload leaves a cluster, and when.
func leaving(key api.Key, e *api.Eviction) string {
	line := key.String() + ": leaving " + e.Cluster
	if e.Until != nil {
		line += ", at the latest at " + e.Until.UTC().Format(time.RFC3339)
	}
	return line
}

// stays is the error that decisions are left on the clusters.
func (d *draining) stays() error {
	return fmt.Errorf("%s left on %s", counted(len(d.left)), strings.Join(d.clusters, ", "))
}

// printHeld says what holds the objects that are left.
func (d *draining) printHeld(ctx context.Context) error {
	t := table{header: []string{"OBJECT", "ON", "HELD BY"}}
	for _, key := range d.keys() {
		reason, err := d.reason(ctx, key)
		if err != nil {
			return err
		}
		t.add(key.String(), strings.Join(d.on(d.left[key]), ","), reason)
	}
	return t.print(d.Environment, d.Stdout)
}

// reason says what holds an object.
func (d *draining) reason(ctx context.Context, key api.Key) (string, error) {
	switch e := d.eviction(d.left[key]); {
	case e == nil:
	case e.PurgeMode == api.PurgeNever:
		return fmt.Sprintf("purge mode %s: it leaves when it is rescheduled", e.PurgeMode), nil
	case e.Until != nil:
		return "its replacement is not healthy yet; it leaves at the latest at " + e.Until.UTC().Format(time.RFC3339), nil
	}
	if p, ok := d.left[key].(*api.Placement); ok && slices.ContainsFunc(p.Spec.Tolerations, func(t api.Toleration) bool {
		return t.Matches(drainTaint.Key, drainTaint.Value, drainTaint.Effect)
	}) {
		return "it tolerates the taint " + taintText(drainTaint.Key, drainTaint.Value, drainTaint.Effect), nil
	}
	explanation, err := d.server.Explain(ctx, key)
	if err != nil {
		return "", err
	}
	reason := explanation.Summary
	if explanation.Kept != "" {
		reason = explanation.Kept
	}
	if explanation.NextAt != nil {
		now := d.Now()
		reason += "; may change in " + age(&now, *explanation.NextAt)
	}
	return reason, nil
}

// counted returns a number of decisions: "1 decision", "2 decisions".
func counted(n int) string {
	if n == 1 {
		return "1 decision"
	}
	return fmt.Sprintf("%d decisions", n)
}

// confirm asks a question on the terminal, and returns an error unless the answer is yes.
func (s *session) confirm(ctx context.Context, question string) error {
	fmt.Fprint(s.Stderr, termtext.Text(question)+" [y/N] ")
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.Stdin).ReadString('\n') // without an answer, it is no
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("nothing was changed")
	case <-ctx.Done():
		return errors.New("interrupted: nothing was changed")
	}
}
