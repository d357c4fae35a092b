package provider_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The configuration of the guide on Argo CD and Flux decides what both are told, with the requests in the manifests
// beside it.
func TestAccStoryGitOps(t *testing.T) {
	f, begin := story(t, "gitops")
	told := func(cluster string) func() {
		return func() {
			argocd, err := http.Post(f.endpoint+"/integrations/argocd/shop/api/v1/getparams.execute", "application/json",
				strings.NewReader(`{"applicationSetName":"web","input":{"parameters":{"kind":"placement","namespace":"shop","name":"web","argocd_name_from":"claims.argocd"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			flux, err := http.Get(f.endpoint + "/integrations/flux/shop/inputs?kind=placement&name=web&limit=100")
			if err != nil {
				t.Fatal(err)
			}
			for _, resp := range []*http.Response{argocd, flux} {
				defer resp.Body.Close()
				var answer struct {
					Output api.PluginOutput
					Inputs []api.DecidedCluster
				}
				if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
					t.Fatal(err)
				}
				rows := append(answer.Inputs, answer.Output.Parameters...)
				if len(rows) != 1 || rows[0].ID != "web."+cluster || rows[0].State != api.ClusterServing || resp == argocd && rows[0].ArgoCDName != cluster+"-prod" {
					t.Errorf("%s: got %d %+v, want %s", resp.Request.URL, resp.StatusCode, rows, cluster)
				}
			}
		}
	}
	moved, end := begin, begin
	begin.PostApplyFunc = told("paris")
	moved.PostApplyFunc = told("berlin")
	moved.ConfigVariables = config.Variables{"prices": config.MapVariable(map[string]config.Variable{
		"berlin": config.FloatVariable(0.1), "paris": config.FloatVariable(0.2), "rome": config.FloatVariable(0.4),
	})}
	end.Destroy = true // the library cannot clean up after for_each
	resource.Test(t, resource.TestCase{Steps: []resource.TestStep{begin, moved, end}})
}
