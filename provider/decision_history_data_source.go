package provider

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// Numbers of entries that are read. They are in the state.
const (
	defaultHistoryLimit = 100
	maxHistoryLimit     = 1000
)

func newDecisionHistoryDataSource() datasource.DataSource {
	text := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: validators}
	}
	return &terraform.DataSource{
		Name:    "decision_history",
		Subject: "the history of decisions",
		Description: "What was decided, when and why: every change of a decision, with its cause and who wrote what changed. " +
			"The entries are those that the token may read, the newest first. Every plan reads them anew, so use them in outputs and checks, not in resources.",
		Arguments: map[string]schema.Attribute{
			"kind":      text("Only decisions of objects of this kind: `placement`, `workload`, `cluster` or `magnum_cluster`."),
			"namespace": text("Only decisions of objects in this namespace. If omitted, of all that the token may read.", terraform.ObjectName{}),
			"name":      text("Only decisions of objects with this name.", terraform.ObjectName{}),
			"cluster":   text("Only decisions that moved to or from this cluster.", terraform.ObjectName{}),
			"cause":     text("Only decisions with this type of cause, such as `metric`."),
			"since":     text("Only decisions made at this time (RFC 3339) or later."),
			"until":     text("Only decisions made before this time (RFC 3339)."),
			"limit": schema.Int64Attribute{
				MarkdownDescription: "Largest number of entries, from 1 to 1000. Default: 100.", Optional: true,
			},
		},
		Answer: map[string]schema.Attribute{
			"entries": schema.ListNestedAttribute{
				MarkdownDescription: "Changes of decisions, the newest first.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: terraform.ComputedAttributes(reflect.TypeFor[api.HistoryEntry]())},
			},
		},
		Ask: readHistory,
	}
}

func readHistory(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
	options := client.HistoryOptions{
		Kind: api.Kind(terraform.Argument(arguments, "kind")), Namespace: terraform.Argument(arguments, "namespace"), Name: terraform.Argument(arguments, "name"),
		Cluster: terraform.Argument(arguments, "cluster"), Cause: api.CauseType(terraform.Argument(arguments, "cause")),
	}
	var errs api.FieldErrors
	for name, to := range map[string]*time.Time{"since": &options.Since, "until": &options.Until} {
		text := terraform.Argument(arguments, name)
		if text == "" {
			continue
		}
		var err error
		if *to, err = time.Parse(time.RFC3339, text); err != nil {
			errs.Add(name, "%q must be a time such as 2026-03-01T12:00:00Z", text)
		}
	}
	limit := defaultHistoryLimit
	if number, ok := arguments["limit"].(json.Number); ok {
		var err error
		if limit, err = strconv.Atoi(number.String()); err != nil || limit < 1 || limit > maxHistoryLimit {
			errs.Add("limit", "%s must be a whole number from 1 to %d", number, maxHistoryLimit)
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	entries := []any{}
	for entry, err := range s.Client().History(ctx, options) {
		if err != nil {
			return nil, err
		}
		document, err := terraform.JSONDocument(entry)
		if err != nil {
			return nil, err
		}
		if entries = append(entries, document); len(entries) == limit {
			break
		}
	}
	return map[string]any{"entries": entries}, nil
}
