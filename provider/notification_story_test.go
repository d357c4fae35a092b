package provider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// destinations records what each destination of the guide on notifications gets.
type destinations struct {
	mu  sync.Mutex
	got map[string][]string // by the first part of the path
	bad []string
}

// ServeHTTP implements http.Handler. Each destination is a folder of one server.
func (d *destinations) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if verifier, err := standardwebhooks.NewWebhook(webhookSecret); name == "webhook" && (err != nil || verifier.Verify(body, r.Header) != nil) {
		d.bad = append(d.bad, fmt.Sprintf("%s has a wrong signature", body))
	}
	if r.Method == http.MethodGet { // of HCP Terraform: no run is pending
		_, _ = io.WriteString(w, `{"data":[]}`)
		return
	}
	d.got[name] = append(d.got[name], path+" "+string(body))
	w.WriteHeader(http.StatusCreated)
}

// tells waits until each destination was told something at a path.
func (d *destinations) tells(t *testing.T, paths map[string]string, text string) statecheck.StateCheck {
	return afterwards(func() error {
		for name, path := range paths {
			eventually.True(t, name+" is told of "+text, func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				for _, got := range d.got[name] {
					if strings.HasPrefix(got, path+" ") && (strings.Contains(got, text) || text == "") {
						return true
					}
				}
				return false
			})
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.bad) > 0 {
			return fmt.Errorf("%s", strings.Join(d.bad, "; "))
		}
		return nil
	})
}

// TestAccStoryNotifications applies the configuration of the guide on notifications, and expects each destination to be told
// that the shop has moved.
func TestAccStoryNotifications(t *testing.T) {
	f, begin := story(t, "notifications")
	d := &destinations{got: map[string][]string{}}
	receiver := httptest.NewServer(d)
	t.Cleanup(receiver.Close)
	addresses, secrets := map[string]config.Variable{}, map[string]config.Variable{
		"webhook": config.StringVariable(webhookSecret), "slack": config.StringVariable(receiver.URL + "/slack/services/T0"),
	}
	for _, name := range []string{"webhook", "alertmanager", "hcp_terraform", "github", "gitlab", "atlantis"} {
		addresses[name] = config.StringVariable(receiver.URL + "/" + name)
		if name != "webhook" {
			secrets[name] = config.StringVariable("t0k3n")
		}
	}
	variables := func(berlin float64) config.Variables {
		return config.Variables{
			"addresses": config.MapVariable(addresses), "secrets": config.MapVariable(secrets),
			"prices": config.MapVariable(map[string]config.Variable{"berlin": config.FloatVariable(berlin), "paris": config.FloatVariable(0.2)}),
		}
	}
	told := map[string]string{"webhook": "", "alertmanager": "api/v2/alerts", "slack": "services/T0", "hcp_terraform": "api/v2/runs", "github": "repos/acme/infrastructure/dispatches"}
	started := map[string]string{"gitlab": "api/v4/projects/acme/infrastructure/trigger/pipeline", "atlantis": "api/plan"}
	moved, end := begin, begin
	begin.ConfigVariables = variables(0.3)
	begin.ConfigStateChecks = []statecheck.StateCheck{d.tells(t, told, "paris"), d.tells(t, started, "")}
	moved.ConfigVariables = variables(0.1)
	moved.ConfigStateChecks = []statecheck.StateCheck{d.tells(t, told, "berlin"), f.listsDeliveries(t, "webhook", 2)}
	end.ConfigVariables, end.Destroy = variables(0.1), true // the library cannot clean up after for_each
	resource.Test(t, resource.TestCase{Steps: []resource.TestStep{begin, moved, end}})
}

// listsDeliveries waits until a notification lists deliveries that succeeded.
func (f *fleet) listsDeliveries(t *testing.T, name string, least int) statecheck.StateCheck {
	return afterwards(func() error {
		eventually.True(t, fmt.Sprintf("%s lists %d deliveries", name, least), func() bool {
			resp, err := http.Get(f.endpoint + "/v1/namespaces/shop/notifications/" + name + "/attempts")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			var list struct {
				Items []struct {
					ID, Result string
					Time       time.Time
				}
			}
			if json.NewDecoder(resp.Body).Decode(&list) != nil {
				return false
			}
			n := 0
			for _, item := range list.Items {
				if item.Result == "delivered" && item.ID != "" && !item.Time.IsZero() {
					n++
				}
			}
			return n >= least
		})
		return nil
	})
}
