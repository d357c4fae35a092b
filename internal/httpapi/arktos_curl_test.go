//go:build integration

package httpapi

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/arktos"
)

// The examples in the guide work as printed, including those from Arktos's own documentation.
func TestExamplesOfTheGuideWithCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatalf("curl is required: %v", err)
	}
	guide, err := os.ReadFile("../../templates/guides/arktos.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) != 5 {
		t.Errorf("the guide has %d examples, want 5", len(blocks))
	}
	s := startGlobal(t)
	home := t.TempDir()
	// Responses with an error status stop the script.
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte("fail-with-body\nsilent\nshow-error\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(script string) string {
		t.Helper()
		script = strings.ReplaceAll(script, "http://127.0.0.1:8665", s.url)
		shell := exec.Command("bash", "-euo", "pipefail", "-c", script)
		shell.Env = append(os.Environ(), "CURL_HOME="+home, "no_proxy=127.0.0.1")
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%s%v", script, out, err)
		}
		return string(out)
	}
	var answers []string
	for _, block := range blocks {
		answers = append(answers, run(block[1]))
	}
	for i, want := range []string{`"site_id":"West--West-az2"`, `"name":"west-1"`, `"result":"ok"`, `"status":"Bound","site_id":"West--West-az1"`, `"resource_groups":[{"name":"web"`} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("example %d: got %s, want it to contain %s", i, answers[i], want)
		}
	}
	for name, want := range map[string]arktos.RegisteredCluster{
		"west-1": {CPUCapacity: 700, MemCapacity: 131072, Storage: []arktos.Storage{{TypeID: "sas", StorageCapacity: 2000}, {TypeID: "sata", StorageCapacity: 1000}, {TypeID: "ssd", StorageCapacity: 2500}}},
		"west-2": {CPUCapacity: 550, MemCapacity: 262144, Storage: []arktos.Storage{{TypeID: "sas", StorageCapacity: 2000}, {TypeID: "sata", StorageCapacity: 1000}, {TypeID: "ssd", StorageCapacity: 3000}}},
	} {
		got := s.siteOf(name)
		if got.CPUCapacity != want.CPUCapacity || got.MemCapacity != want.MemCapacity || len(got.Storage) != 3 || got.Storage[2] != want.Storage[2] || got.Storage[0] != want.Storage[0] {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	// The remaining rows of the table in Arktos's documentation: by ID.
	id := s.siteOf("west-1").ID
	run("curl http://127.0.0.1:8665/globalscheduler/v1/clusters/id/" + id + "\n curl -X DELETE http://127.0.0.1:8665/globalscheduler/v1/clusters/id/" + id)
	s.expect(http.StatusNotFound, http.MethodGet, "/globalscheduler/v1"+"/clusters/id/"+id, "")
	run("curl -X DELETE http://127.0.0.1:8665/globalscheduler/v1/clusters/name/west-2")
}
