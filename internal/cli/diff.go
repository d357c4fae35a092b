package cli

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

func (s *session) diffCommand() *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "diff -f FILE", Short: "Show what apply would change, and which decisions would move", Args: cobra.NoArgs,
		Long: fmt.Sprintf(`Show what apply would change, without changing anything: the differences of the objects,
and which decisions would move. The exit code is 0 if nothing differs and %d if something
does. Secrets are not shown: whether a secret that is already set would change is not
known, and does not count as a difference.

`, exitChanges) + fileFormat,
		Example: "  PROGRAM diff -f fleet.yaml",
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.diff(cmd.Context(), names) },
	}
	defineFiles(cmd, &names)
	return cmd
}

// differenceError says that objects differ.
type differenceError struct{ count int }

// Error implements error.
func (e *differenceError) Error() string {
	if e.count == 1 {
		return "1 object differs"
	}
	return fmt.Sprintf("%d objects differ", e.count)
}

func (s *session) diff(ctx context.Context, names []string) error {
	found, server, err := s.withFiles(ctx, names)
	if err != nil {
		return err
	}
	var request api.Simulation
	for object, err := range found.objects() {
		if err != nil {
			return err // the file has changed since it was checked
		}
		differs, err := s.diffObject(ctx, server, object)
		if err != nil {
			return err
		}
		if differs {
			if err := addObject(&request, object.Object); err != nil {
				return err
			}
		}
	}
	if len(request.Objects) == 0 {
		return nil
	}
	result, err := server.Simulate(ctx, request)
	if err != nil {
		return fmt.Errorf("which decisions would move is not known: %w", err)
	}
	fmt.Fprintln(s.Stdout) // an error shows with the decisions
	if err := s.printChanges(result); err != nil {
		return err
	}
	return &differenceError{len(request.Objects)}
}

// diffObject prints how an object differs from that of the server. Then the object has what it keeps of
// the other one, as after a write: secrets and status.
func (s *session) diffObject(ctx context.Context, server *client.Client, object fileObject) (differs bool, err error) {
	key := api.KeyOf(object)
	current, err := server.Get(ctx, key)
	if err != nil && !client.IsNotFound(err) {
		return false, err
	}
	from, before := "/dev/null", ""
	if err == nil {
		from = key.String() + " on the server"
		current.SetDefaults()
		if before, err = shownIntent(current); err != nil {
			return false, err
		}
		if err := keepOf(object, current); err != nil {
			return false, err
		}
	}
	after, err := shownIntent(object.Object)
	if err != nil || before == after {
		return false, err
	}
	return true, s.printDiff(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(before)), B: slices.Collect(strings.Lines(after)), FromFile: from, ToFile: object.at, Context: 3,
	})
}

// keepOf makes an object keep what a write would keep of the current one.
func keepOf(object fileObject, current api.Object) error {
	reflect.ValueOf(object.StatusPart()).Elem().Set(reflect.ValueOf(current.StatusPart()).Elem())
	document, err := api.DecodeDocument(object.document)
	if err != nil {
		return err
	}
	if err := api.KeepSecrets(object.Object, current, document).Err(); err != nil {
		return fmt.Errorf("%s: %w", object.at, err)
	}
	meta, labels := object.Meta(), object.Meta().Labels
	*meta = *current.Meta()
	meta.Labels = labels
	return nil
}

// secretText is shown in place of a secret.
const secretText = "(secret)"

// shownIntent returns what users can write of an object, as YAML.
func shownIntent(object api.Object) (string, error) {
	data, err := client.Encode(withSecretText(object))
	if err != nil {
		return "", err
	}
	text, err := toYAML(data)
	return string(text), err
}

// withSecretText returns the user's part of an object with the same text in place of each secret.
func withSecretText(object api.Object) api.Object {
	shown := object.Copy()
	meta := shown.Meta()
	*meta = api.Metadata{Name: meta.Name, Namespace: meta.Namespace, Cluster: meta.Cluster, Labels: meta.Labels}
	for field, secret := range shown.Secrets() {
		if !secret.IsZero() {
			shown.SetSecret(field, api.NewSecret(secretText))
		}
	}
	return shown
}

func (s *session) printDiff(d difflib.UnifiedDiff) error {
	text, err := difflib.GetUnifiedDiffString(d)
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if _, err := io.WriteString(s.Stdout, s.paint(diffColor(line), termtext.Text(strings.TrimSuffix(line, "\n")))+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// diffColor returns the colour of a line of a difference.
func diffColor(line string) color {
	switch {
	case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		return bold
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return plain
}
