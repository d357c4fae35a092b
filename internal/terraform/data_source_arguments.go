package terraform

import (
	"fmt"

	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// DataSourceArguments returns attributes of a resource as arguments of a data source. Defaults are
// left to the server.
func DataSourceArguments(attributes map[string]schema.Attribute) map[string]datasource.Attribute {
	arguments := make(map[string]datasource.Attribute, len(attributes))
	for name, attribute := range attributes {
		arguments[name] = dataSourceArgument(attribute)
	}
	return arguments
}

func dataSourceArgument(attribute schema.Attribute) datasource.Attribute {
	description, required := attribute.GetMarkdownDescription(), attribute.IsRequired()
	switch a := attribute.(type) {
	case unsupported:
		return unsupportedArgument{why: a.why}
	case schema.StringAttribute:
		return datasource.StringAttribute{CustomType: a.CustomType, MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.BoolAttribute:
		return datasource.BoolAttribute{CustomType: a.CustomType, MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.Int64Attribute:
		return datasource.Int64Attribute{CustomType: a.CustomType, MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.Float64Attribute:
		return datasource.Float64Attribute{CustomType: a.CustomType, MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.ListAttribute:
		return datasource.ListAttribute{ElementType: a.ElementType, MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.SetAttribute:
		return datasource.SetAttribute{ElementType: a.ElementType, MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.MapAttribute:
		return datasource.MapAttribute{ElementType: a.ElementType, MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.SingleNestedAttribute:
		return datasource.SingleNestedAttribute{Attributes: DataSourceArguments(a.Attributes), MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators}
	case schema.ListNestedAttribute:
		return datasource.ListNestedAttribute{
			NestedObject:        datasource.NestedAttributeObject{Attributes: DataSourceArguments(a.NestedObject.Attributes)},
			MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators,
		}
	case schema.SetNestedAttribute:
		return datasource.SetNestedAttribute{
			NestedObject:        datasource.NestedAttributeObject{Attributes: DataSourceArguments(a.NestedObject.Attributes)},
			MarkdownDescription: description, Required: required, Optional: !required, Validators: a.Validators,
		}
	}
	return unsupportedArgument{why: fmt.Errorf("a data source cannot have an argument of type %T", attribute)}
}
