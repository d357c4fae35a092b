//go:build integration

package integration

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// make demo KEEP=1 leaves a server running. Its last lines say where the page is, with which token it opens, and how to end
// it.
func TestDemoIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := exec.Command("scripts/demo.sh")
	demo.Dir = "../.."
	demo.Env = append(demo.Environ(), "KEEP=1", "TMPDIR="+dir)
	out, err := demo.CombinedOutput()
	end := regexp.MustCompile(`(?m)^To end it: (.*)$`).FindSubmatch(out)
	page := regexp.MustCompile(`\nThe page: (http://\S+)/ui token: (\S+)\n$`).FindSubmatch(out)
	if err != nil || end == nil || page == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kill := sync.OnceFunc(func() {
		if text, err := exec.Command("bash", "-c", string(end[1])).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", end[1], err, text)
		}
		eventually.True(t, "nothing runs that writes another file", func() bool { return os.RemoveAll(dir) == nil })
	})
	t.Cleanup(kill)

	endpoint := string(page[1])
	c, err := client.New(client.Options{Endpoint: endpoint, Token: api.NewSecret(string(page[2])), MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var decisions api.DecisionList
	if err := c.Call(t.Context(), http.MethodGet, "/v1/decisions", nil, &decisions); err != nil {
		t.Fatal(err)
	}
	if decisions.Total != 2 || decisions.Unsatisfied != 0 {
		t.Errorf("the page would show %+v", decisions)
	}
	if resp, err := http.Get(endpoint + "/ui"); err != nil {
		t.Error(err)
	} else {
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !bytes.Contains(body.Bytes(), []byte("<script")) {
			t.Errorf("the page: %d %.300s", resp.StatusCode, body.Bytes())
		}
	}

	kill()
	if resp, err := http.Get(endpoint + "/healthz"); err == nil {
		_ = resp.Body.Close()
		t.Error("the server still runs")
	}
}
