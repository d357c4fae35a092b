package provider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The configurations of the guides on Argo CD and Flux decide what the controllers are told. integration/gitops_test.go
// runs the manifests beside them with the controllers themselves.
func TestAccStoryGitOps(t *testing.T) {
	for _, example := range []struct {
		directory string
		ask       func(f *fleet) (*http.Response, error)
	}{
		{"argocd", func(f *fleet) (*http.Response, error) {
			return http.Post(f.endpoint+"/integrations/argocd/shop/api/v1/getparams.execute", "application/json",
				strings.NewReader(`{"applicationSetName":"web","input":{"parameters":{"kind":"placement","namespace":"shop","name":"web","argocd_name_from":"claims.argocd"}}}`))
		}},
		{"flux", func(f *fleet) (*http.Response, error) {
			return http.Get(f.endpoint + "/integrations/flux/shop/inputs?kind=placement&name=web&limit=100")
		}},
	} {
		t.Run(example.directory, func(t *testing.T) {
			f, begin := story(t, example.directory)
			// Not a Check: the library cannot read a state with for_each for one.
			told := func(cluster string) statecheck.StateCheck {
				return afterwards(func() error {
					resp, err := example.ask(f)
					if err != nil {
						return err
					}
					defer resp.Body.Close()
					var answer struct {
						Output api.PluginOutput
						Inputs []api.DecidedCluster
					}
					body, err := io.ReadAll(resp.Body)
					if err != nil {
						return err
					}
					if err := json.Unmarshal(body, &answer); err != nil {
						return err
					}
					rows := append(answer.Inputs, answer.Output.Parameters...)
					if len(rows) != 1 || rows[0].ID != "web."+cluster || rows[0].State != api.ClusterServing || example.directory == "argocd" && rows[0].ArgoCDName != cluster+"-prod" {
						return fmt.Errorf("got %d %s, want %s", resp.StatusCode, body, cluster)
					}
					return nil
				})
			}
			moved, end := begin, begin
			begin.ConfigStateChecks = []statecheck.StateCheck{told("paris")}
			moved.ConfigStateChecks = []statecheck.StateCheck{told("berlin")}
			moved.ConfigVariables = config.Variables{"prices": config.MapVariable(map[string]config.Variable{
				"berlin": config.FloatVariable(0.1), "paris": config.FloatVariable(0.2), "rome": config.FloatVariable(0.4),
			})}
			end.Destroy = true // the library cannot clean up after for_each
			resource.Test(t, resource.TestCase{Steps: []resource.TestStep{begin, moved, end}})
		})
	}
}
