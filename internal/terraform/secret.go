package terraform

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A secret x of the API has three attributes: x_wo is the value, which is in no plan or state;
// x_wo_version lets Terraform detect a change; and x_stored says what the server has.
const (
	WriteOnlySuffix = "_wo"
	versionSuffix   = "_wo_version"
	storedSuffix    = "_stored"
)

// withSecrets replaces each secret in the attributes of a resource by its attributes.
func withSecrets(attributes map[string]schema.Attribute) map[string]schema.Attribute {
	all := maps.Clone(attributes)
	for name, attribute := range attributes {
		if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
			nested.Attributes = withSecrets(nested.Attributes)
			all[name] = nested
		}
		if !attribute.IsWriteOnly() || !attribute.IsSensitive() {
			continue
		}
		now := name + WriteOnlySuffix
		kept := " The server stores it encrypted and never returns it; it appears in no plan or state. Null keeps the stored value, `\"\"` removes it."
		switch a := attribute.(type) {
		case schema.StringAttribute:
			a.MarkdownDescription += kept
			all[now] = a
			all[name+storedSuffix] = schema.BoolAttribute{
				MarkdownDescription: "Whether the server has a value.",
				Computed:            true,
			}
		case schema.MapAttribute:
			a.MarkdownDescription += " The server stores the values encrypted and never returns them; they appear in no plan or state. Null keeps the stored values, `{}` removes all of them. In a map, a null entry keeps its stored value; entries not listed are removed."
			all[now] = a
			all[name+storedSuffix] = schema.ListAttribute{
				MarkdownDescription: "Names of the values that the server has.",
				ElementType:         types.StringType,
				Computed:            true,
			}
		}
		delete(all, name)
		all[name+versionSuffix] = schema.Int64Attribute{
			CustomType:          WholeNumber{},
			MarkdownDescription: "Any whole number. Change it to send a new `" + now + "`, because Terraform cannot detect that it changed. A new version needs a value: it is an error if `" + now + "` is null.",
			Optional:            true,
		}
	}
	return all
}

// secretNames returns the names of the secrets among attributes.
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

// secretAttribute is a secret in the attributes of a resource.
type secretAttribute struct {
	block []string // names of the objects that contain it
	name  string
	isMap bool
}

// secretsOfKinds caches the result of secrets: kind → []secretAttribute.
var secretsOfKinds sync.Map

// secrets returns the secrets of the resource, ordered by name.
func (r *Resource) secrets() []secretAttribute {
	if known, ok := secretsOfKinds.Load(r.Kind); ok {
		return known.([]secretAttribute) //nolint:forcetypeassert // nothing else is stored
	}
	var secrets []secretAttribute
	walk(r.Attributes, nil, func(at []string, attribute schema.Attribute) {
		nested, in := inside(attribute)
		if in == inObject {
			secrets = append(secrets, secretsAmong(nested, at)...)
		}
	})
	secrets = append(secrets, secretsAmong(r.Attributes, nil)...)
	secretsOfKinds.Store(r.Kind, secrets)
	return secrets
}

func secretsAmong(attributes map[string]schema.Attribute, block []string) []secretAttribute {
	var secrets []secretAttribute
	for _, name := range secretNames(attributes) {
		_, isMap := attributes[name+WriteOnlySuffix].(schema.MapAttribute)
		secrets = append(secrets, secretAttribute{block: block, name: name, isMap: isMap})
	}
	return secrets
}

// at returns the path of the attribute of a secret with the suffix.
func (s *secretAttribute) at(suffix string) path.Path {
	return s.blockAt(len(s.block)).AtName(s.name + suffix)
}

// blockAt returns the path of the objects that contain a secret, up to depth.
func (s *secretAttribute) blockAt(depth int) path.Path {
	at := path.Empty()
	for _, name := range s.block[:depth] {
		at = at.AtName(name)
	}
	return at
}

// field returns the secret's field in the API: spec.kubernetes.kubeconfig.
func (s *secretAttribute) field() string {
	return strings.Join(append(append([]string{"spec"}, s.block...), s.name), ".")
}

// valuesIn returns the attributes of the object that contains a secret, or nil if it is absent.
func (s *secretAttribute) valuesIn(attributes map[string]tftypes.Value) map[string]tftypes.Value {
	for _, name := range s.block {
		attributes = AttributesOf(attributes[name])
	}
	return attributes
}

// documentIn returns the object that contains a secret, or nil if it is absent.
func (s *secretAttribute) documentIn(document map[string]any) map[string]any {
	for _, name := range s.block {
		document, _ = document[name].(map[string]any)
	}
	return document
}

// isSecretVersion reports whether an attribute is the version of a secret, which only Terraform
// has.
func isSecretVersion(attributes map[string]schema.Attribute, name string) bool {
	secret, ok := strings.CutSuffix(name, versionSuffix)
	return ok && attributes[secret+WriteOnlySuffix] != nil
}

// storedSecret returns the value of the attribute that says which secret the server has, from a
// document of the server: a secret that it has is null there.
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

// foldSecrets replaces the attributes of each secret by its API field. With stored, a secret that
// the server has is null, as in the API.
func foldSecrets(secrets []secretAttribute, document map[string]any, stored bool) {
	for i := range secrets {
		name := secrets[i].name
		document := secrets[i].documentIn(document)
		if document == nil {
			continue
		}
		given := document[name+WriteOnlySuffix]
		had := document[name+storedSuffix]
		for _, suffix := range []string{WriteOnlySuffix, versionSuffix, storedSuffix} {
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

// addSecrets copies the secrets of a configuration into the document of a plan, which never
// contains them.
func addSecrets(secrets []secretAttribute, document, config map[string]any) {
	for i := range secrets {
		secret := &secrets[i]
		into, from := secret.documentIn(document), secret.documentIn(config)
		name := secret.name + WriteOnlySuffix
		if given, ok := from[name]; ok && into != nil {
			into[name] = given
		}
	}
}

// isSecretElement reports whether a path is an element of a map of secrets, which may be null.
func isSecretElement(secrets []secretAttribute, at path.Path) bool {
	parent := at.ParentPath()
	return slices.ContainsFunc(secrets, func(s secretAttribute) bool {
		return s.isMap && parent.Equal(s.at(WriteOnlySuffix))
	})
}

// isStoredSecret reports whether a path is an attribute that says which secrets the server has.
func isStoredSecret(secrets []secretAttribute, at path.Path) bool {
	return slices.ContainsFunc(secrets, func(s secretAttribute) bool { return at.Equal(s.at(storedSuffix)) })
}

// secretSpelling renames the fields of errors to the attributes of secrets.
func secretSpelling(secrets []secretAttribute, fields api.FieldErrors) api.FieldErrors {
	spelled := slices.Clone(fields)
	for i, field := range fields {
		for j := range secrets {
			rest, ok := strings.CutPrefix(field.Field, secrets[j].field())
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				spelled[i].Field = secrets[j].field() + WriteOnlySuffix + rest
			}
		}
	}
	return spelled
}

// spelled returns the error of a write with fields renamed to the attributes of the configuration.
func (r *Resource) spelled(err error) error {
	var problem *api.Problem
	if !errors.As(err, &problem) || len(problem.Errors) == 0 {
		return err
	}
	spelled := *problem
	spelled.Errors = secretSpelling(r.secrets(), problem.Errors)
	return &spelled
}
