package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestNotModified(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	tag := s.mustPut(path, `{"spec":{}}`).Header.Get("ETag")
	for header, want := range map[string]int{tag: 304, "W/" + tag: 304, "*": 304, `"1", ` + tag: 304, `"1"`: 200, "": 200, "nonsense": 400} {
		a := s.do(http.MethodGet, path, "", "If-None-Match", header)
		if a.StatusCode != want {
			t.Errorf("If-None-Match: %s: got %d, want %d", header, a.StatusCode, want)
		}
		if want == 304 && (len(a.body) > 0 || a.Header.Get("ETag") != tag) {
			t.Errorf("304 with body %q and ETag %s", a.body, a.Header.Get("ETag"))
		}
	}
	// The status of a cluster includes values that change without a write.
	tag = s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`).Header.Get("ETag")
	if a := s.do(http.MethodGet, "/v1/clusters/eu-1", "", "If-None-Match", tag); a.StatusCode != 200 || decodeAs[api.Cluster](t, a).Status.State != api.StateOnline {
		t.Errorf("cluster: %d %s", a.StatusCode, a.body)
	}
}

func TestBlockingGet(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	version := decodeAs[api.Placement](t, s.mustPut(path, `{"spec":{}}`)).Metadata.ResourceVersion

	t.Run("older version answers at once", func(t *testing.T) {
		if a := s.do(http.MethodGet, path+"?wait=30s&resource_version=1", ""); a.StatusCode != 200 {
			t.Errorf("got %d, want 200", a.StatusCode)
		}
	})
	t.Run("no change during the wait", func(t *testing.T) {
		started := time.Now()
		a := s.do(http.MethodGet, path+"?wait=80ms&resource_version="+version, "")
		if a.StatusCode != 200 || decodeAs[api.Placement](t, a).Metadata.ResourceVersion != version || time.Since(started) < 80*time.Millisecond {
			t.Errorf("got %d %s after %s", a.StatusCode, a.body, time.Since(started))
		}
	})
	t.Run("without wait", func(t *testing.T) {
		if a := s.do(http.MethodGet, path+"?resource_version="+version, ""); a.StatusCode != 200 {
			t.Errorf("got %d, want 200", a.StatusCode)
		}
	})
	t.Run("bad version", func(t *testing.T) {
		if a := s.do(http.MethodGet, path+"?wait=1s&resource_version=x", ""); a.StatusCode != 422 || a.problem(t).Errors[0].Field != "resource_version" {
			t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
		}
	})
	waitFor := func(t *testing.T, path string) <-chan answer {
		t.Helper()
		answers := make(chan answer, 1)
		go func() {
			a, err := s.try(context.Background(), http.MethodGet, path, "")
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
		select {
		case a := <-answers:
			t.Fatalf("answered without waiting: %d %s", a.StatusCode, a.body)
		case <-time.After(50 * time.Millisecond):
		}
		return answers
	}
	t.Run("changed while waiting", func(t *testing.T) {
		answers := waitFor(t, path+"?wait=30s&resource_version="+version)
		s.mustPut(path, `{"spec":{"number_of_clusters":1}}`)
		if a := <-answers; a.StatusCode != 200 || decodeAs[api.Placement](t, a).Metadata.Generation != 2 {
			t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("deleted while waiting", func(t *testing.T) {
		version := decodeAs[api.Placement](t, s.do(http.MethodGet, path, "")).Metadata.ResourceVersion
		answers := waitFor(t, path+"?wait=30s&resource_version="+version)
		s.do(http.MethodDelete, path, "")
		if a := <-answers; a.StatusCode != 404 {
			t.Errorf("got %d %s, want 404", a.StatusCode, a.body)
		}
	})
}

func TestExplanation(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	a := s.do(http.MethodGet, "/v1/namespaces/shop/placements/web/explanation", "")
	if got := decodeAs[api.Explanation](t, a); a.StatusCode != 200 || got.Name != "web" || got.Namespace != "shop" {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodGet, "/v1/namespaces/shop/placements/api/explanation", ""); a.StatusCode != 404 {
		t.Errorf("unknown placement: %d", a.StatusCode)
	}
}

func TestSimulation(t *testing.T) {
	s := startServer(t)
	a := s.do(http.MethodPost, "/v1/simulations", `{"base":"empty","objects":[{"kind":"placement","metadata":{"name":"web"},"spec":{},"status":{"clusters":["a"]}}]}`)
	if a.StatusCode != 200 || !strings.Contains(string(a.body), `"web"`) {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	for body, want := range map[string]int{
		`{"objects":[{"kind":"nothing"}]}`: 422, `{"objcts":[]}`: 422, `{`: 400, `null`: 422, ``: 400, `{"objects":[1]}`: 422, `{"now":"yesterday"}`: 422,
	} {
		if a := s.do(http.MethodPost, "/v1/simulations", body); a.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", body, a.StatusCode, a.body, want)
		}
	}
	// The size of what is asked is limited, too, before it becomes many times larger in memory.
	many := func(n int, element string) string { return "[" + strings.Repeat(element+",", n) + element + "]" }
	for _, body := range []string{
		`{"base":"empty","objects":` + many(maxSimulated, "{}") + `}`,
		`{"delete":` + many(maxSimulated, "0") + `,"base":"empty"}`,
		`{"objects":[{"kind":"placement","metadata":{"name":"a"},"spec":{"tolerations":` + many(maxSimulatedValues, "0") + `}}]}`,
	} {
		if a := s.do(http.MethodPost, "/v1/simulations", body); a.StatusCode != 413 || !strings.Contains(string(a.body), "simulate fewer") {
			t.Errorf("%.40s…: got %d %.200s, want 413", body, a.StatusCode, a.body)
		}
	}
	if a := s.do(http.MethodPost, "/v1/simulations", `{"base":"empty","objects":`+many(maxSimulated-1, "{}")+`}`); a.StatusCode == 413 {
		t.Errorf("got %d %.200s for as many objects as there may be", a.StatusCode, a.body)
	}
	// So are the errors of a preview.
	a = s.do(http.MethodPost, "/v1/previews", `{"metadata":{"name":"a","namespace":"shop"},"spec":{"label_constraints":`+many(200_000, `""`)+`}}`)
	if a.StatusCode != 422 || len(a.body) > 100_000 || !strings.Contains(string(a.body), "… and 199901 more") {
		t.Errorf("got %d with %d bytes: %.200s", a.StatusCode, len(a.body), a.body)
	}
	// The number of concurrent requests is limited.
	begun, release := make(chan struct{}), make(chan struct{})
	s.decisions.simulate = func(context.Context, api.Simulation) (*api.SimulationResult, error) {
		begun <- struct{}{}
		<-release
		return &api.SimulationResult{}, nil
	}
	statuses := make(chan int, simulationSlots)
	for range simulationSlots {
		go func() {
			a, err := s.try(context.Background(), http.MethodPost, "/v1/simulations", "{}")
			if err != nil {
				t.Error(err)
				statuses <- 0
				return
			}
			statuses <- a.StatusCode
		}()
	}
	for range simulationSlots {
		<-begun
	}
	if a := s.do(http.MethodPost, "/v1/simulations", "{}"); a.StatusCode != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("one simulation too many: got %d, want 429", a.StatusCode)
	}
	if a := s.do(http.MethodGet, "/v1/namespaces/shop/placements/web/explanation?at=1", ""); a.StatusCode != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("an explanation of the past besides: got %d, want 429", a.StatusCode)
	}
	close(release)
	for range simulationSlots {
		if status := <-statuses; status != 200 {
			t.Errorf("simulation within the limit: got %d, want 200", status)
		}
	}
}
