package terraform

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var (
	_ datasource.DataSourceWithConfigure        = (*DataSource)(nil)
	_ datasource.DataSourceWithConfigValidators = (*DataSource)(nil)
	_ datasource.DataSourceWithValidateConfig   = (*DataSource)(nil)
)

// DataSource is a data source that makes one request: its arguments are the request, and the
// response is a document of the API.
type DataSource struct {
	Name        string
	Description string
	// Subject names what is read in error messages.
	Subject string
	// Objects holds the rules of arguments that describe an object, by argument; "" means all
	// arguments together.
	Objects map[string]ObjectRules
	// Validators check several arguments together.
	Validators []datasource.ConfigValidator
	// Arguments are set by the user; Answer are the computed attributes.
	Arguments map[string]schema.Attribute
	Answer    map[string]schema.Attribute
	// Ask queries the server. arguments are the user's values; the document has the attributes of
	// Answer.
	Ask func(ctx context.Context, s *Session, arguments map[string]any) (document map[string]any, err error)

	session *Session
}

// Metadata implements datasource.DataSource.
func (d *DataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = typePrefix + d.Name
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *DataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = SessionOf(req.ProviderData, &resp.Diagnostics)
}

// Schema implements datasource.DataSource.
func (d *DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := map[string]schema.Attribute{}
	for name, attribute := range d.Answer {
		attributes[name] = attribute
	}
	for name, attribute := range d.Arguments {
		attributes[name] = attribute
	}
	checkArguments(typePrefix+d.Name, attributes, &resp.Diagnostics)
	resp.Schema = schema.Schema{MarkdownDescription: d.Description, Attributes: attributes}
}

// ValidateConfig implements datasource.DataSourceWithValidateConfig for arguments that describe an
// object, using the server's rules.
func (d *DataSource) ValidateConfig(_ context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	given := AttributesOf(req.Config.Raw)
	for _, under := range slices.Sorted(maps.Keys(d.Objects)) {
		var config configDocument
		var document any
		var err error
		if under == "" {
			document, err = d.documentOf(&config, given)
		} else {
			document, err = config.read(given[under], path.Root(under))
		}
		if err != nil {
			diagnose(&resp.Diagnostics, "read the arguments of "+typePrefix+d.Name, req.Config.Raw.Type(), err)
			return
		}
		if object, ok := document.(map[string]any); ok {
			validateObject(d.Objects[under], under, object, &config, req.Config.Raw.Type(), &resp.Diagnostics)
		}
	}
}

// ConfigValidators implements datasource.DataSourceWithConfigValidators.
func (d *DataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return d.Validators
}

// Read implements datasource.DataSource.
func (d *DataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	if !d.session.Connected(&resp.Diagnostics) {
		return
	}
	given := AttributesOf(req.Config.Raw)
	arguments := d.readArguments(given, req.Config.Raw.Type(), &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	document, err := d.Ask(ctx, d.session, arguments)
	if err != nil {
		d.session.Failed(&resp.Diagnostics, "read "+d.Subject+named(arguments), req.Config.Raw.Type(), err)
		return
	}
	values := make(map[string]tftypes.Value, len(given))
	for name, attribute := range resp.State.Schema.GetAttributes() {
		argument, isArgument := d.Arguments[name]
		if isArgument && (!given[name].IsNull() || !argument.IsComputed()) {
			values[name] = given[name]
			continue
		}
		value, err := answerValue(attribute.GetType().TerraformType(ctx), document[name])
		if err != nil {
			diagnose(&resp.Diagnostics, "read "+d.Subject+named(arguments), req.Config.Raw.Type(), err)
			return
		}
		values[name] = value
	}
	resp.State.Raw = tftypes.NewValue(req.Config.Raw.Type(), values)
}

func (d *DataSource) readArguments(given map[string]tftypes.Value, t tftypes.Type, diags *diag.Diagnostics) map[string]any {
	var config configDocument
	arguments, err := d.documentOf(&config, given)
	if err != nil {
		diagnose(diags, "read the arguments of "+typePrefix+d.Name, t, err)
		return nil
	}
	for _, at := range config.Nulls {
		at, name := shownPath(at)
		diags.AddAttributeError(at, "Invalid "+name, Sentence(name+": must not be null"))
	}
	return arguments
}

// documentOf returns the user's values as JSON.
func (d *DataSource) documentOf(config *configDocument, given map[string]tftypes.Value) (map[string]any, error) {
	document := map[string]any{}
	for name := range d.Arguments {
		value, err := config.read(given[name], path.Root(name))
		if err != nil {
			return nil, err
		}
		if value != nil {
			document[name] = value
		}
	}
	return document, nil
}

// named returns the name in the arguments, for messages.
func named(arguments map[string]any) string {
	if name := Argument(arguments, "name"); name != "" {
		return " " + api.Key{Namespace: Argument(arguments, "namespace"), Name: name}.Path()
	}
	return ""
}

// Argument returns a string argument, or "".
func Argument(arguments map[string]any, name string) string {
	text, _ := arguments[name].(string)
	return text
}

// Texts returns a list of strings from the arguments.
func Texts(arguments map[string]any, name string) []string {
	list, _ := arguments[name].([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
