package terraform_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// On request an apply waits until the pods are split. Where time runs out, the state
// has the decision all the same; where waiting does not help, there is none.
func TestAwaitSplit(t *testing.T) {
	typ := schemaOf(t.Context(), objectResources(t)[api.KindWorkload]).Type().TerraformType(t.Context())
	observed := func(status api.ConditionStatus, reason string) []api.Condition {
		return []api.Condition{
			{Type: api.ConditionScheduled, Status: api.ConditionTrue},
			{Type: api.ConditionDistributed, Status: status, Reason: reason, Message: "1 on-demand and 2 spot of 2 and 1"},
		}
	}
	converging, converged := observed(api.ConditionFalse, api.ReasonConverging), observed(api.ConditionTrue, api.ReasonConverged)
	for _, test := range []struct {
		name     string
		wait     string
		created  bool
		unsplit  bool              // no distribution is requested
		answers  [][]api.Condition // successive responses, and none afterwards
		polls    int
		severity diag.Severity
		want     string // part of the diagnostic; "" = none
	}{
		{name: "split after some polls", wait: terraform.WaitDistributed, answers: [][]api.Condition{nil, converging, converged}, polls: 3},
		{name: "decision only", wait: terraform.WaitDecided, answers: [][]api.Condition{converging}, polls: 1},
		{name: "nothing to split", wait: terraform.WaitDistributed, unsplit: true, answers: [][]api.Condition{nil}, polls: 1},
		{name: "too few spot nodes", wait: terraform.WaitDistributed, answers: [][]api.Condition{observed(api.ConditionFalse, api.ReasonFallenBack)}, polls: 1},
		{name: "no cluster", wait: terraform.WaitDistributed, created: true, polls: 1, severity: diag.SeverityWarning, want: "0 of 9 clusters fit.",
			answers: [][]api.Condition{{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Message: "nothing"}}}},
		{name: "timeout", wait: terraform.WaitDistributed, answers: [][]api.Condition{converging}, polls: 2, severity: diag.SeverityError,
			want: "No split after 1m0s (timeouts.update). Last condition: Distributed is False, Converging: 1 on-demand and 2 spot of 2 and 1. The server continues to replace pods"},
		{name: "timeout on create", wait: terraform.WaitDistributed, created: true, answers: [][]api.Condition{converging}, polls: 2, severity: diag.SeverityWarning, want: "timeouts.create"},
	} {
		t.Run(test.name, func(t *testing.T) {
			written := &api.Workload{Kind: api.KindWorkload, Metadata: api.Metadata{Name: "web", Namespace: "shop", Generation: 2, ResourceVersion: "10"}}
			if !test.unsplit {
				written.Spec.Distribution = &api.DistributionSpec{}
			}
			var polls atomic.Int64
			within, pass := faketime.Deadline(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/explanation") {
					_ = json.NewEncoder(w).Encode(api.Explanation{Summary: "0 of 9 clusters fit"})
					return
				}
				poll := int(polls.Add(1))
				if poll > len(test.answers) {
					pass()
					<-r.Context().Done()
					return
				}
				answer := *written
				answer.Status = api.WorkloadStatus{ObservedGeneration: 2, Conditions: test.answers[poll-1]}
				_ = json.NewEncoder(w).Encode(&answer)
			}))
			defer server.Close()
			c, err := client.New(client.Options{Endpoint: server.URL, MaxRetries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(within, eventually.Limit)
			defer cancel()
			plan := terraformtest.ConfigValue(t, typ, doc{"name": "web", "namespace": "shop", "wait": doc{"for": test.wait}})
			object, diags := resourceOf(t, api.KindWorkload).Await(ctx, terraform.NewSession(c, "test", "", false), terraform.DecisionWait{Object: written, Plan: plan, Created: test.created, Limit: time.Minute})
			if got := int(polls.Load()); object == nil || got != test.polls {
				t.Errorf("the wait ended after %d requests with %+v", got, object)
			}
			switch {
			case test.want == "" && len(diags) > 0:
				t.Errorf("diagnostics %v, want none", diags)
			case test.want != "" && (len(diags) != 1 || diags[0].Severity() != test.severity || !strings.Contains(diags[0].Detail(), test.want)):
				t.Errorf("diagnostics %v, want %q", diags, test.want)
			}
		})
	}
}
