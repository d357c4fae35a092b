package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// otherVersion makes a server look like one of another version, which knows other fields: change changes its OpenAPI
// document and the objects that it shows.
type otherVersion struct {
	*door
	mu   sync.Mutex
	puts []string
	gets int // of single clusters
}

// document is decoded JSON.
type document = map[string]any

func newOtherVersion(t *testing.T, endpoint string, describe func(schemas, paths document), show func(spec document), unknown ...string) *otherVersion {
	t.Helper()
	o := &otherVersion{door: newDoor(t, endpoint)}
	o.proxy.ModifyResponse = func(resp *http.Response) error {
		path := resp.Request.URL.Path
		cluster := strings.HasPrefix(path, "/v1/clusters/")
		if path != "/v1/server" && path != "/v1/openapi.json" && !cluster || resp.StatusCode >= 300 || resp.StatusCode == http.StatusNoContent {
			return nil
		}
		var body document
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
			return err
		}
		switch spec, _ := body["spec"].(document); {
		case path == "/v1/server":
			delete(body, "fields")
		case cluster:
			show(spec)
		default:
			info, _ := body["info"].(document)
			info["version"] = "1.2.3"
			components, _ := body["components"].(document)
			schemas, _ := components["schemas"].(document)
			paths, _ := body["paths"].(document)
			describe(schemas, paths)
		}
		data, err := json.Marshal(body)
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		resp.Header.Set("Content-Length", strconv.Itoa(len(data)))
		return err
	}
	o.let(func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		r.Header.Set("Accept-Encoding", "identity") // the proxy changes the response
		if !strings.HasPrefix(r.URL.Path, "/v1/clusters/") {
			return true
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if r.Method == http.MethodGet {
			o.gets++
		}
		if r.Method != http.MethodPut {
			return true
		}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		o.puts = append(o.puts, string(data))
		for _, field := range unknown {
			if strings.Contains(string(data), `"`+field+`"`) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, `{"status":422,"errors":[{"field":"spec.`+field+`","message":"is not a known field"}]}`)
				return false
			}
		}
		data = bytes.ReplaceAll(data, []byte(`"future":7,`), nil)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		return true
	})
	return o
}

func properties(schemas document, name string) document {
	schema, _ := schemas[name].(document)
	found, _ := schema["properties"].(document)
	return found
}

// What an older server does not know is an error of the plan, with both versions, if the configuration has it. Defaults
// of such fields are not sent.
func TestAccOlderServer(t *testing.T) {
	f := newFleet(t)
	old := newOtherVersion(t, f.endpoint, func(schemas, paths document) {
		delete(properties(schemas, "ClusterSpec"), "paused")
		delete(properties(schemas, "Taint"), "value")
		for path := range paths {
			if strings.Contains(path, "/placement-scores/{name}") {
				delete(paths, path)
			}
		}
	}, func(spec document) { delete(spec, "paused") }, "paused")
	config := func(settings string) string { return (&fleet{endpoint: old.URL}).config(settings) }
	w := newWorkspace(t, config(`resource "scheduler_cluster" "a" { name = "a" }`))
	w.ok("apply", "-auto-approve")
	if result := w.ok("plan", "-detailed-exitcode"); result.code != 0 {
		t.Errorf("the next plan changes something:\n%s", result.output)
	}
	for name, test := range map[string]struct {
		config string
		want   []string
	}{
		"a field":            {`resource "scheduler_cluster" "a" {` + "\n name = \"a\"\n paused = true\n }", []string{"paused"}},
		"a field of a list":  {`resource "scheduler_cluster" "a" {` + "\n name = \"a\"\n taints = [{ key = \"k\", value = \"v\", effect = \"NoSelect\" }]\n }", []string{"taints[*].value"}},
		"a kind of resource": {`resource "scheduler_placement_score" "s" {` + "\n name = \"s\"\n cluster = \"a\"\n scores = { x = 1 }\n }", []string{"scheduler_placement_score"}},
	} {
		w.file("main.tf", config(test.config))
		result := w.run("plan")
		if len(result.errors) != 1 {
			t.Fatalf("%s: %d errors:\n%s", name, len(result.errors), result.output)
		}
		text := result.errors[0].Summary + "\n" + result.errors[0].Detail
		for _, want := range append(test.want, "version 1.2.3", "this provider has version", "pgrade the server", old.URL) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the error does not say %q:\n%s", name, want, text)
			}
		}
	}
}

// What only a newer server knows keeps its value when the provider changes something else.
func TestAccNewerServer(t *testing.T) {
	f := newFleet(t)
	newer := newOtherVersion(t, f.endpoint, func(schemas, _ document) {
		properties(schemas, "ClusterSpec")["future"] = document{"type": "integer"}
	}, func(spec document) { spec["future"] = 7 })
	w := newWorkspace(t, (&fleet{endpoint: newer.URL}).config(`resource "scheduler_cluster" "a" { name = "a" }`))
	w.ok("apply", "-auto-approve")
	w.file("main.tf", (&fleet{endpoint: newer.URL}).config("resource \"scheduler_cluster\" \"a\" {\n name = \"a\"\n region = \"eu\"\n }"))
	w.ok("apply", "-auto-approve")
	if n := len(newer.puts); n != 2 || strings.Contains(newer.puts[0], "future") || !strings.Contains(newer.puts[1], `"future":7`) {
		t.Errorf("the writes are %q", newer.puts)
	}
}

// A server that does not say which fields it knows is asked for its OpenAPI document, in which every field is found.
func TestAccSameFields(t *testing.T) {
	f := newFleet(t)
	same := newOtherVersion(t, f.endpoint, func(document, document) {}, func(document) {})
	config := func(region string) string {
		return (&fleet{endpoint: same.URL}).config(`
			resource "scheduler_cluster" "a" {
			  name   = "a"
			  region = "` + region + `"
			  paused = true
			  taints = [{ key = "k", value = "v", effect = "NoSelect" }]
			  health = { url = "http://127.0.0.1:9/" }
			}`)
	}
	w := newWorkspace(t, config("eu"))
	w.ok("apply", "-auto-approve")
	w.file("main.tf", config("us"))
	before := same.gets
	w.ok("apply", "-auto-approve")
	if n := same.gets - before; n != 1 {
		t.Errorf("a refresh and a write take %d reads", n)
	}
}
