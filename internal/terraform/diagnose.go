package terraform

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// diagnose converts the error of an operation on an object to diagnostics. All errors of the server
// are reported through it. what is the operation and its object: `create placement "shop/web"`. t
// is the type whose attributes the fields of errors refer to.
func diagnose(diags *diag.Diagnostics, what string, t tftypes.Type, err error) {
	summary := "Cannot " + what
	var fields api.FieldErrors
	var problem *api.Problem
	if errors.As(err, &problem) {
		fields = problem.Errors
	} else if !errors.As(err, &fields) {
		diags.AddError(summary, Sentence(err.Error()))
		return
	}
	for _, field := range fields {
		if problem != nil && problem.Status == http.StatusForbidden {
			forbiddenField(diags, summary, t, field)
			continue
		}
		fieldDiagnostic(diags, summary, t, field)
	}
	if len(fields) > 0 {
		return
	}
	text := Sentence(problem.Error())
	// Advice about concurrent changes does not apply to other conflicts, such as spot not being
	// enabled, or to reads.
	other := strings.HasPrefix(what, "read ") || problem.Type != "" && !problem.Type.IsCollision()
	if !other || !changedMeanwhile(problem.Status) {
		text += remedy(problem.Status)
	}
	diags.AddError(summary, text)
}

// changedMeanwhile reports whether a write failed because the object is not as the plan expects.
func changedMeanwhile(status int) bool {
	return status == http.StatusConflict || status == http.StatusPreconditionFailed
}

const collisionRemedy = " The object was changed after this plan was made: plan again."

// remedy gives advice for a status.
func remedy(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return " Set the provider's token, or SCHEDULER_TOKEN, to one that the server knows."
	case http.StatusForbidden:
		return " The provider's token does not allow this: use a token with the required role and namespace."
	case http.StatusConflict, http.StatusPreconditionFailed:
		return collisionRemedy
	case http.StatusInsufficientStorage:
		return " The server's store is full: its operator has to raise the quota or free disk space."
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return " The server was busy until all retries were used: try again later, or raise the provider's max_retries."
	}
	return ""
}

// fieldDiagnostic reports a validation error at its attribute.
func fieldDiagnostic(diags *diag.Diagnostics, summary string, t tftypes.Type, field api.FieldError) {
	at, ok := attributePath(t, field.Field)
	if !ok {
		diags.AddError(summary, Sentence(field.Error()))
		return
	}
	at, shown := shownPath(at)
	name, message := shown, attributeNames(field.Message)
	if strings.HasPrefix(field.Field, name+".") {
		// The field is within a string of the configuration, such as JSON.
		name, message = field.Field, field.Message
	}
	diags.AddAttributeError(at, "Invalid "+shown, Sentence(name+": "+message))
}

// forbiddenField reports a valid field that the token may not use: it refers to an object that the
// token may not read.
func forbiddenField(diags *diag.Diagnostics, summary string, t tftypes.Type, field api.FieldError) {
	at, ok := attributePath(t, field.Field)
	if !ok {
		diags.AddError(summary, Sentence(field.Error())+remedy(http.StatusForbidden))
		return
	}
	at, shown := shownPath(at)
	diags.AddAttributeError(at, "Forbidden "+shown, Sentence(shown+": "+attributeNames(field.Message))+remedy(http.StatusForbidden))
}

// exists reports whether a create failed because there is an object of that name.
func exists(err error, opts client.PutOptions) bool {
	return client.StatusOf(err) == http.StatusPreconditionFailed && !previewRefused(err, opts)
}

// alreadyExists reports that an object to be created exists. same says that it is as it would be
// created, again that an error has explained what to do.
func alreadyExists(diags *diag.Diagnostics, resourceType string, key api.Key, same, again bool) {
	if again {
		diags.AddError(fmt.Sprintf("Already exists: %s", key), fmt.Sprintf("Another error of this run says what to do. To import it: terraform import %s.<name> %s", resourceType, key.Path()))
		return
	}
	whose := "The server has an object of this name that is not in the state of this resource. What to do depends on who created it:"
	if same {
		whose = "The server has exactly this object, but it is not in the state of this resource: an apply that was interrupted may have created it. What to do depends on who created it:"
	}
	diags.AddError(fmt.Sprintf("Already exists: %s", key), fmt.Sprintf(`%s
  - An apply that was interrupted, another configuration or another client: to manage it here, import it: terraform import %[2]s.<name> %[3]s
    or write:
      import {
        to = %[2]s.<name>
        id = %[3]q
      }
  - Another instance of this resource, because names moved between the instances of a count: plan and apply again. With for_each over the names, or moved blocks, they do not move.
  - This resource itself, because create_before_destroy creates its replacement first: two objects cannot have one name. Remove create_before_destroy, or let a new name come with each replacement.
  - Another resource of this configuration with the same name: rename one of them.`, whose, resourceType, key.Path()))
}

// timedOut describes an expired timeout: which one, and where to increase it.
func timedOut(ctx context.Context, err error, operation string, limit time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	var unreachable *client.UnreachableError
	if errors.As(err, &unreachable) {
		return fmt.Errorf("%w; the time limit of %s (timeouts.%s) was exceeded", err, limit, operation)
	}
	return fmt.Errorf("no response within the time limit of %s (timeouts.%s)", limit, operation)
}

// ArgumentError reports an error for an argument of a function.
func ArgumentError(position int64, err error) *function.FuncError {
	return function.NewArgumentFuncError(position, Clause(err))
}

// Clause returns an error without a final period, because Terraform appends it after a colon and
// ends the sentence itself.
func Clause(err error) string {
	return termtext.Lines(api.Redact(strings.TrimSuffix(err.Error(), ".")))
}

// specField matches a field of the API that is not part of a longer name, such as
// managedCluster.spec, and not quoted.
var specField = regexp.MustCompile(`(^|[\s(,;])spec\.([a-z])`)

// attributeNames replaces field names in a message of the server by attribute names.
func attributeNames(text string) string { return specField.ReplaceAllString(text, "$1$2") }

// chosenNames matches the start of the sentence about a decision.
var chosenNames = regexp.MustCompile(`^\S+(, \S+)*(, \d+ more)? (was )?chosen\b`)

// Sentence returns text that starts with a capital letter, unless it starts with a name, and ends
// with a period, using attribute names. All text from the server passes through it: control
// characters are escaped.
func Sentence(text string) string {
	if text == "" {
		return ""
	}
	text = termtext.Lines(api.Redact(text))
	named := strings.HasPrefix(text, "spec.") || chosenNames.MatchString(text)
	text = attributeNames(text)
	// A quoted or snake_case word at the start is a name, too.
	if word, _, _ := strings.Cut(text, " "); !named && !strings.ContainsAny(word, "_.[:") {
		first, size := utf8.DecodeRuneInString(text)
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}
