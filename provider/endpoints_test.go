package provider_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// If a server stops during an apply, after it has accepted writes that it has not answered yet, the apply continues
// with the next server. Nothing is written twice.
func TestAccNextServer(t *testing.T) {
	const count = 40
	f := newFleet(t)
	at, err := url.Parse(f.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	first, second := proxytest.Start(t, at.Host), proxytest.Start(t, at.Host)
	config := func(labels string) string {
		return fmt.Sprintf(`
			provider "scheduler" {
			  endpoints = ["http://%s", "http://%s"]
			}
			resource "scheduler_cluster" "site" {
			  count  = %d
			  name   = "site-${count.index}"
			  labels = { %s }
			}`, first.Address(), second.Address(), count, labels)
	}
	clusters := func(generation int64) (n int) {
		for object, err := range f.client.List(f.ctx(), api.KindCluster, client.ListOptions{}) {
			if err == nil && object.Meta().Generation == generation {
				n++
			}
		}
		return n
	}
	// interrupt stops a server after the apply has written a few objects, while unanswered writes are in progress.
	interrupt := func(p *proxytest.Proxy, generation int64) func() {
		return func() {
			go func() {
				eventually.True(t, "the apply writes", func() bool { return clusters(generation) >= 3 })
				p.Stall(proxytest.ToClient)
				held := p.Held()
				eventually.True(t, "an answer is held back", func() bool { return p.Held() > held || clusters(generation) == count })
				p.Down(t)
			}()
		}
	}
	written := func(generation int64) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if held := first.Held(); held < generation {
				return fmt.Errorf("only %d answers were held back: nothing was interrupted", held)
			}
			if n := clusters(generation); n != count {
				return fmt.Errorf("%d clusters of %d have been written %d times", n, count, generation)
			}
			return nil
		}
	}
	nothing := resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{PreConfig: interrupt(first, 1), Config: config(`a = "1"`), Check: written(1), ConfigPlanChecks: nothing},
			{PreConfig: func() { first.Pass(proxytest.ToClient); first.Up(t); interrupt(first, 2)() }, Config: config(`a = "2"`), Check: written(2), ConfigPlanChecks: nothing},
		},
	})
}
