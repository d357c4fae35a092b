package cli

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"sync"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// fileFormat says what files of objects contain.
const fileFormat = `Files are in YAML or JSON and may have several documents: objects, or lists as
get -o yaml prints them. A directory stands for the .yaml, .yml and .json files in it, and "-"
for standard input. A secret that a file does not have is kept.`

func (s *session) applyCommand() *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create or replace the objects in files", Args: cobra.NoArgs,
		Long: `Create or replace the objects in files, and say of each whether it was created, updated
or unchanged. Nothing is written unless all files can be read. If the server refuses an
object, the others are still written, and the exit code is 1. Objects that are not in the
files stay as they are.

` + fileFormat + "\n\nWhat Terraform manages, the next apply of Terraform changes back.",
		Example: "  PROGRAM apply -f fleet.yaml\n  PROGRAM get clusters -o yaml | PROGRAM apply -f - --context test",
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.apply(cmd.Context(), names) },
	}
	defineFiles(cmd, &names)
	return cmd
}

// defineFiles adds the flag of files with objects.
func defineFiles(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVarP(names, "file", "f", nil, "file or directory with objects, - for standard input; may be repeated")
}

// withFiles returns the files of a command line, all of which can be read, and the server they are for.
func (s *session) withFiles(ctx context.Context, names []string) (*files, *client.Client, error) {
	if len(names) == 0 {
		return nil, nil, usage("--file: name a file or directory with objects, or - for standard input")
	}
	found, err := s.findFiles(names)
	if err != nil {
		return nil, nil, err
	}
	if err := found.check(); err != nil {
		return nil, nil, err
	}
	server, err := s.connect(ctx)
	return found, server, err
}

// refusedError says that the server refused some of the objects.
type refusedError struct{ refused, all int }

// Error implements error.
func (e *refusedError) Error() string {
	return fmt.Sprintf("%d of %d objects were refused", e.refused, e.all)
}

func (s *session) apply(ctx context.Context, names []string) error {
	found, server, err := s.withFiles(ctx, names)
	if err != nil {
		return err
	}
	var result refusedError
	for objects, err := range together(found.objects()) {
		if err != nil {
			return err // the file has changed since it was checked
		}
		outcomes := make([]string, len(objects))
		errs := make([]error, len(objects))
		var writes sync.WaitGroup
		for i, object := range objects {
			writes.Go(func() { outcomes[i], errs[i] = applyObject(ctx, server, object) })
		}
		writes.Wait()
		var ended error
		for i, object := range objects {
			result.all++
			if err := s.tellApplied(ctx, &result, object, outcomes[i], errs[i]); ended == nil {
				ended = err
			}
		}
		if ended != nil {
			return ended
		}
	}
	if result.refused > 0 {
		return &result
	}
	return nil
}

// atOnce is how many objects are written at once.
const atOnce = 16

// together groups successive objects that may be written at once: those of one kind, since objects may need those of
// other kinds before them. No object is in the files twice.
func together(objects iter.Seq2[fileObject, error]) iter.Seq2[[]fileObject, error] {
	return func(yield func([]fileObject, error) bool) {
		var group []fileObject
		for object, err := range objects {
			if n := len(group); n > 0 && (err != nil || n == atOnce || group[0].ObjectKind() != object.ObjectKind()) {
				if !yield(group, nil) {
					return
				}
				group = nil
			}
			if err != nil {
				yield(nil, err)
				return
			}
			group = append(group, object)
		}
		if len(group) > 0 {
			yield(group, nil)
		}
	}
}

// tellApplied prints what became of an object. It returns an error that the others would have, too.
func (s *session) tellApplied(ctx context.Context, result *refusedError, object fileObject, outcome string, err error) error {
	switch status := client.StatusOf(err); {
	case err == nil:
		_, err = fmt.Fprintln(s.Stdout, termtext.Text(api.KeyOf(object).String()+" "+outcome))
		return err
	case ctx.Err() != nil, exitCode(err) == exitNoServer, status == 0, status == http.StatusUnauthorized:
		return err
	}
	result.refused++
	fmt.Fprintln(s.Stderr, termtext.Lines(api.Redact(fmt.Sprintf("%s refused: %s: %v", api.KeyOf(object), object.at, err))))
	return nil
}

// applyObject writes an object, and returns what became of it.
func applyObject(ctx context.Context, server *client.Client, object fileObject) (string, error) {
	before, err := server.Get(ctx, api.KeyOf(object))
	if err != nil && !client.IsNotFound(err) {
		return "", err
	}
	existed := err == nil
	takeAway, err := object.removedSecrets()
	if err != nil {
		return "", err
	}
	after, err := server.Put(ctx, object.Object, client.PutOptions{TakeAway: takeAway})
	switch {
	case err != nil:
		return "", err
	case !existed:
		return "created", nil
	case before.Meta().UID == after.Meta().UID && before.Meta().Generation == after.Meta().Generation:
		return "unchanged", nil
	}
	return "updated", nil
}

// removedSecrets returns the fields of secrets that the document says are empty. The others that it does
// not have are kept.
func (o fileObject) removedSecrets() ([]string, error) {
	if len(api.SecretFields(o.ObjectKind())) == 0 {
		return nil, nil
	}
	document, err := api.DecodeDocument(o.document)
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, field := range api.SecretFields(o.ObjectKind()) {
		value := document
		for _, step := range api.SplitField(field.Field) {
			name, _ := step.(string)
			block, _ := value.(map[string]any)
			value = block[name]
		}
		switch value := value.(type) {
		case string:
			if value == "" {
				removed = append(removed, field.Field)
			}
		case map[string]any:
			if len(value) == 0 {
				removed = append(removed, field.Field)
			}
		}
	}
	return removed, nil
}
