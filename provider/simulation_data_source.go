package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newSimulationDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "simulation",
		Subject: "the simulation",
		Description: "What the server would decide if some objects were different. A simulation changes nothing: " +
			"it takes the current fleet (or an empty one), replaces or adds `objects`, removes those in `delete`, and makes all decisions once.",
		Arguments: simulationArguments(),
		Answer: map[string]schema.Attribute{
			"result": schema.SingleNestedAttribute{
				MarkdownDescription: "What the server would decide.",
				Computed:            true,
				Attributes: map[string]schema.Attribute{
					"objects": schema.ListAttribute{
						MarkdownDescription: "The given objects with their new status, and the placements and workloads that would change, as JSON.",
						ElementType:         jsontypes.NormalizedType{},
						Computed:            true,
					},
					"changes": schema.ListNestedAttribute{
						MarkdownDescription: "Decisions that would differ from the current ones.",
						Computed:            true,
						NestedObject:        schema.NestedAttributeObject{Attributes: terraform.ComputedAttributes(reflect.TypeFor[api.Change]())},
					},
					"explanations": schema.ListNestedAttribute{
						MarkdownDescription: "Why each placement and workload would get its clusters.",
						Computed:            true,
						NestedObject:        schema.NestedAttributeObject{Attributes: terraform.ComputedAttributes(reflect.TypeFor[api.Explanation]())},
					},
				},
			},
		},
		Ask: simulate,
	}
}

// simulationArguments are the fields of a simulation. Its objects are JSON, and its time is
// validated during the plan.
func simulationArguments() map[string]schema.Attribute {
	arguments := terraform.Arguments(reflect.TypeFor[api.Simulation]())
	arguments["now"] = schema.StringAttribute{
		MarkdownDescription: arguments["now"].GetMarkdownDescription(),
		CustomType:          timetypes.RFC3339Type{},
		Optional:            true,
	}
	arguments["objects"] = schema.ListAttribute{
		MarkdownDescription: arguments["objects"].GetMarkdownDescription() + " Each is a JSON document: `jsonencode({ kind = \"cluster\", metadata = { name = \"a\" }, spec = {} })`.",
		ElementType:         jsontypes.NormalizedType{},
		Optional:            true,
	}
	return arguments
}

func simulate(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
	simulation := api.Simulation{Base: terraform.Argument(arguments, "base")}
	simulation.Steps, _ = arguments["steps"].(bool)
	for i, text := range terraform.Texts(arguments, "objects") {
		if !json.Valid([]byte(text)) {
			return nil, api.FieldErrors{{Field: fmt.Sprintf("objects[%d]", i), Message: "is not JSON: write jsonencode({ kind = …, metadata = …, spec = … })"}}
		}
		simulation.Objects = append(simulation.Objects, json.RawMessage(text))
	}
	if text := terraform.Argument(arguments, "now"); text != "" {
		now, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, api.FieldErrors{{Field: "now", Message: fmt.Sprintf("%q is not a time of RFC 3339, such as \"2026-01-31T12:00:00Z\"", text)}}
		}
		simulation.Now = &now
	}
	deleted, _ := arguments["delete"].([]any)
	for _, item := range deleted {
		key, _ := item.(map[string]any)
		simulation.Delete = append(simulation.Delete, api.Key{
			Kind: api.Kind(terraform.Argument(key, "kind")), Namespace: terraform.Argument(key, "namespace"), Name: terraform.Argument(key, "name"),
		})
	}
	result, err := s.Client().Simulate(ctx, simulation)
	if err != nil {
		return nil, err
	}
	document, err := terraform.JSONDocument(result)
	if err != nil {
		return nil, err
	}
	objects := make([]any, 0, len(result.Objects))
	for _, object := range result.Objects {
		data, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", api.KeyOf(object), err)
		}
		objects = append(objects, string(data))
	}
	document["objects"] = objects
	return map[string]any{"result": document}, nil
}
