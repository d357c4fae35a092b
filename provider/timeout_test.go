package provider_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

func TestAccTimeouts(t *testing.T) {
	f := newFleet(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never responds
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: fmt.Sprintf(`
					provider "scheduler" {
					  endpoint         = "http://%s"
					  check_connection = false
					}
					resource "scheduler_cluster" "east" {
					  name     = "east"
					  timeouts = { create = "300ms" }
					}`, silent.Addr()),
				ExpectError: regexp.MustCompile(`(?s)Cannot create cluster "east".*time\s+limit\s+of\s+300ms\s+\(timeouts.create\)`),
			},
			{
				Config: fmt.Sprintf(`
					provider "scheduler" {
					  endpoint        = "http://%s"
					  request_timeout = "100ms"
					  max_retries     = 0
					}
					data "scheduler_server" "it" {}`, silent.Addr()),
				ExpectError: regexp.MustCompile(`(?s)Cannot\s+reach\s+the\s+scheduling\s+server\s+at\s+http://127`),
			},
			{
				Config:      f.config("resource \"scheduler_cluster\" \"east\" {\n name = \"east\"\n timeouts = { update = \"soon\" }\n}"),
				ExpectError: regexp.MustCompile(`soon`),
			},
			{
				Config: f.config(`
					resource "scheduler_cluster" "east" {
					  name     = "east"
					  timeouts = { create = "180s", read = "180s", update = "180s", delete = "180s" }
					}`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
		},
	})
}

// An object whose creation got no response in time is not forgotten.
func TestAccCreateWithoutAnswer(t *testing.T) {
	f := newFleet(t)
	target, err := url.Parse(f.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // it would report what it is there for
	proxy.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.Method != http.MethodPut {
			return nil
		}
		_, err := io.Copy(io.Discard, resp.Body) // the server has written the object
		<-resp.Request.Context().Done()          // and the response is never sent
		return err
	}
	silencer := httptest.NewServer(proxy)
	t.Cleanup(silencer.Close)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(eastKey) },
		Steps: []resource.TestStep{{
			Config: fmt.Sprintf(`
				provider "scheduler" { endpoint = %q }
				resource "scheduler_cluster" "east" {
				  name     = "east"
				  timeouts = { create = "5s" }
				}`, silencer.URL),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
		}},
	})
}
