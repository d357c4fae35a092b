package terraform

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A secret x of the API is three attributes: x_wo takes it and is in no plan and no
// state, x_wo_version makes Terraform see that it changed, and x_stored says what
// the server has. x itself is the former name of x_wo.
const (
	WriteOnlySuffix = "_wo"
	versionSuffix   = "_wo_version"
	storedSuffix    = "_stored"
)

// SecretsVersion is the former name of all the versions together.
const SecretsVersion = "secrets_version"

// withSecrets completes the attributes of a resource in which every secret has one
// of its name.
func withSecrets(attributes map[string]schema.Attribute) map[string]schema.Attribute {
	all := withNestedSecrets(attributes)
	all[SecretsVersion] = schema.Int64Attribute{
		CustomType:          WholeNumber{},
		MarkdownDescription: "Former name of the versions of all secrets. Any whole number: changing it sends the secrets that are set.",
		DeprecationMessage:  "Use the version beside the secret, such as kubeconfig_wo_version.",
		Optional:            true,
	}
	return all
}

func withNestedSecrets(attributes map[string]schema.Attribute) map[string]schema.Attribute {
	all := maps.Clone(attributes)
	for name, attribute := range attributes {
		if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
			nested.Attributes = withNestedSecrets(nested.Attributes)
			all[name] = nested
		}
		if !attribute.IsWriteOnly() || !attribute.IsSensitive() {
			continue
		}
		now := name + WriteOnlySuffix
		former := "Use " + now + "."
		kept := " The server stores it encrypted and never returns it; it appears in no plan or state. Null keeps the stored value, `\"\"` removes it."
		switch a := attribute.(type) {
		case schema.StringAttribute:
			text := a.MarkdownDescription
			a.MarkdownDescription = text + kept
			all[now] = a
			a.MarkdownDescription, a.DeprecationMessage = "Former name of `"+now+"`.", former
			all[name] = a
			all[name+storedSuffix] = schema.BoolAttribute{
				MarkdownDescription: "Whether the server has a value.",
				Computed:            true,
			}
		case schema.MapAttribute:
			text := a.MarkdownDescription
			a.MarkdownDescription = text + " The server stores the values encrypted and never returns them; they appear in no plan or state. Null keeps the stored values, `{}` removes all of them. In a map, null keeps a value, and values that the map does not name are removed."
			all[now] = a
			a.MarkdownDescription, a.DeprecationMessage = "Former name of `"+now+"`.", former
			all[name] = a
			all[name+storedSuffix] = schema.ListAttribute{
				MarkdownDescription: "Names of the values that the server has.",
				ElementType:         types.StringType,
				Computed:            true,
			}
		}
		all[name+versionSuffix] = schema.Int64Attribute{
			CustomType:          WholeNumber{},
			MarkdownDescription: "Any whole number. Change it to send a new `" + now + "`, because Terraform cannot detect that it changed. If it changes while `" + now + "` is null, the stored value is removed, and the plan says so.",
			Optional:            true,
		}
	}
	return all
}

// secretNames are the secrets among attributes.
func secretNames(attributes map[string]schema.Attribute) []string {
	var names []string
	for name := range attributes {
		if secret, ok := strings.CutSuffix(name, WriteOnlySuffix); ok && attributes[secret+versionSuffix] != nil {
			names = append(names, secret)
		}
	}
	slices.Sort(names)
	return names
}

// isSecretVersion reports that an attribute is the version of a secret, which only
// Terraform knows.
func isSecretVersion(attributes map[string]schema.Attribute, name string) bool {
	secret, ok := strings.CutSuffix(name, versionSuffix)
	return ok && attributes[secret+WriteOnlySuffix] != nil
}

// storedSecret is the attribute that says which secret the server has, by a
// document of the server: of a secret that it has, there is a null.
func storedSecret(attributes map[string]schema.Attribute, name string, document map[string]any) (stored any, ok bool) {
	secret, ok := strings.CutSuffix(name, storedSuffix)
	if !ok || attributes[secret+WriteOnlySuffix] == nil {
		return nil, false
	}
	value, has := document[secret]
	if _, isMap := attributes[name].(schema.ListAttribute); !isMap {
		return has, true
	}
	elements, _ := value.(map[string]any)
	names := make([]any, 0, len(elements))
	for _, element := range slices.Sorted(maps.Keys(elements)) {
		names = append(names, element)
	}
	return names, true
}

// foldSecrets makes of the attributes of each secret the one field that the API
// has. With stored, a secret that the server has is the null that the API shows.
func foldSecrets(attributes map[string]schema.Attribute, document map[string]any, stored bool) {
	for name, attribute := range attributes {
		nested, ok := attribute.(schema.SingleNestedAttribute)
		inner, isObject := document[name].(map[string]any)
		if ok && isObject {
			foldSecrets(nested.Attributes, inner, stored)
		}
	}
	for _, name := range secretNames(attributes) {
		given := document[name+WriteOnlySuffix]
		if given == nil {
			given = document[name]
		}
		had := document[name+storedSuffix]
		for _, suffix := range []string{"", WriteOnlySuffix, versionSuffix, storedSuffix} {
			delete(document, name+suffix)
		}
		switch had := had.(type) {
		case bool:
			if had && stored {
				document[name] = nil
			}
		case []any:
			if len(had) > 0 && stored {
				elements := map[string]any{}
				for _, element := range had {
					if text, ok := element.(string); ok {
						elements[text] = nil
					}
				}
				document[name] = elements
			}
		}
		if given != nil {
			document[name] = given
		}
	}
}

// isSecretElement reports that a path is that of an element of a map of secrets,
// which may be null.
func isSecretElement(attributes map[string]schema.Attribute, at path.Path) bool {
	among, _, rest := innermost(attributes, at)
	a, isMap := among.(schema.MapAttribute)
	return isMap && a.IsWriteOnly() && rest
}

// isStoredSecret reports that a path is that of an attribute that says which secrets
// the server has.
func isStoredSecret(attributes map[string]schema.Attribute, at path.Path) bool {
	_, name, _ := innermost(attributes, at)
	secret, ok := strings.CutSuffix(name, storedSuffix)
	for _, step := range at.Steps() {
		if nested, isNested := attributes[step.String()].(schema.SingleNestedAttribute); isNested {
			attributes = nested.Attributes
		}
	}
	return ok && attributes[secret+WriteOnlySuffix] != nil
}

// innermost is the attribute that a path leads to, and its name; rest says that the
// path goes on into the elements of it.
func innermost(attributes map[string]schema.Attribute, at path.Path) (attribute schema.Attribute, name string, rest bool) {
	for _, step := range at.Steps() {
		next, ok := step.(path.PathStepAttributeName)
		if !ok || attributes == nil {
			return attribute, name, true
		}
		name = string(next)
		attribute = attributes[name]
		nested, _ := attribute.(schema.SingleNestedAttribute)
		attributes = nested.Attributes
	}
	return attribute, name, false
}

// secretSpelling renames the fields of errors as a configuration spells its
// secrets: under their present names unless it has the former ones.
func secretSpelling(attributes map[string]schema.Attribute, config tftypes.Value, fields api.FieldErrors) api.FieldErrors {
	spelled := slices.Clone(fields)
	for i, field := range fields {
		prefix, rest, ok := strings.Cut(field.Field, ".")
		if !ok {
			continue
		}
		spelled[i].Field = prefix + "." + spellSecret(attributes, AttributesOf(config), rest)
	}
	return spelled
}

// spelled is the error of a write, its fields as the configuration spells them.
func (r *Resource) spelled(config tftypes.Value, err error) error {
	var problem *api.Problem
	if !errors.As(err, &problem) || len(problem.Errors) == 0 {
		return err
	}
	spelled := *problem
	spelled.Errors = secretSpelling(r.Attributes, config, problem.Errors)
	return &spelled
}

// validateSecretSpelling refuses a secret that is given under both of its names.
func validateSecretSpelling(attributes map[string]schema.Attribute, config map[string]tftypes.Value, at path.Path, diags *diag.Diagnostics) {
	for name, attribute := range attributes {
		if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
			validateSecretSpelling(nested.Attributes, AttributesOf(config[name]), at.AtName(name), diags)
		}
	}
	for _, name := range secretNames(attributes) {
		if now := name + WriteOnlySuffix; !config[name].IsNull() && !config[now].IsNull() {
			diags.AddAttributeError(at.AtName(now), "Invalid "+at.AtName(now).String(), fmt.Sprintf("%s: must be absent because %s is set, which is its former name.", at.AtName(now), name))
		}
	}
}

func spellSecret(attributes map[string]schema.Attribute, config map[string]tftypes.Value, field string) string {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	name, rest := field[:end], field[end:]
	if nested, ok := attributes[name].(schema.SingleNestedAttribute); ok && strings.HasPrefix(rest, ".") {
		return name + "." + spellSecret(nested.Attributes, AttributesOf(config[name]), rest[1:])
	}
	former := config[name]
	if attributes[name+versionSuffix] != nil && (former.IsKnown() && former.IsNull() || former.Type() == nil) {
		name += WriteOnlySuffix
	}
	return name + rest
}
