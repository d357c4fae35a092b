package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/arktos"
)

// TestEachMachineGetsAFlavor checks that, of all choices that fit, the first machines get the best flavors.
func TestEachMachineGetsAFlavor(t *testing.T) {
	t.Parallel()
	sized := `,"cpucapacity":14,"memcapacity":1000000,"flavors":[{"flavorid":"big","vcpus":4,"ram":1024},{"flavorid":"small","vcpus":2,"ram":1024},{"flavorid":"few","totalcapacity":1}]`
	counted := `,"flavors":[{"flavorid":"a","totalcapacity":1},{"flavorid":"b","totalcapacity":2},{"flavorid":"c","totalcapacity":3}]`
	for name, c := range map[string]struct {
		cluster, resources string
		replicas           int
		status             int
		want               string // number of machines in each group
		left               string // remaining CPU
	}{
		"two of the best":      {sized, `{"flavors":["big","small"],"count":5}`, 1, 201, "[{big 2} {small 3}]", "0"},
		"the small ones alone": {sized, `{"flavors":["small"],"count":5}`, 1, 201, "[{small 5}]", "4"},
		"all of the best":      {sized, `{"flavors":["big","small"],"count":3}`, 1, 201, "[{big 3}]", "2"},
		"too many":             {sized, `{"flavors":["big","small"],"count":8}`, 1, 409, "", "14"},
		"two resources":        {sized, `{"flavors":["big","small"],"count":2},{"flavors":["big","small"],"count":2}`, 1, 201, "[{big 3} {small 1}]", "0"},
		"two groups":           {sized, `{"flavors":["big","small"],"count":2}`, 2, 201, "[{big 1} {small 1}] [{big 1} {small 1}]", "2"},
		"a number and a size":  {sized, `{"flavors":["few","big","small"],"count":5}`, 1, 201, "[{big 3} {few 1} {small 1}]", "0"},
		"numbers alone":        {counted, `{"flavors":["a","b","c"],"count":5}`, 1, 201, "[{a 1} {b 2} {c 2}]", ""},
		"one number":           {counted, `{"flavors":["c"],"count":3}`, 1, 201, "[{c 3}]", ""},
		"above the number":     {counted, `{"flavors":["c"],"count":4}`, 1, 409, "", ""},
		"above all numbers":    {counted, `{"flavors":["a","b","c"],"count":7}`, 1, 409, "", ""},
		"more than are tried":  {sized, `{"flavors":["big","big2","big3","small"],"count":7}`, 1, 201, "[{small 7}]", "0"},
		"replicas":             {sized, `{"flavors":["big","small"]}`, 5, 201, "[] [] [] [] []", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startGlobal(t)
			s.mustRegister("west", "West", "az1", c.cluster)
			before := s.fleet.Snapshot().Revision()
			body := fmt.Sprintf(`{"allocation":{"id":"a","replicas":%d,"resource_group":{"resources":[%s]}}}`, c.replicas, c.resources)
			a := s.expect(c.status, http.MethodPost, allocationsPath, body)
			if c.status == 201 {
				var got string
				for i, group := range decodeAs[arktos.AllocationAnswer](t, a).Allocation.ResourceGroups {
					if i > 0 {
						got += " "
					}
					got += fmt.Sprint(group.Machines)
				}
				if got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			} else if after := s.fleet.Snapshot().Revision(); after != before {
				t.Errorf("a workload that does not fit was written: revision %d, want %d", after, before)
			}
			status := decodeAs[api.Cluster](t, s.expect(200, http.MethodGet, "/v1/clusters/west", "")).Status
			if string(status.Available["cpu"]) != c.left {
				t.Errorf("available %v, want %q CPUs", status.Available, c.left)
			}
			if c.status != 201 {
				return
			}
			// Its capacity is free again, and so are the counts.
			s.expect(200, http.MethodDelete, allocationsPath+"/id/a", "")
			s.expect(c.status, http.MethodPost, allocationsPath, body)
		})
	}
}

// TestAnAllocationThatDoesNotFitIsNeverWritten: nothing can be left of it, whenever
// the server stops.
func TestAnAllocationThatDoesNotFitIsNeverWritten(t *testing.T) {
	s := startServer(t)
	written := s.fleet.Snapshot().Revision()
	s.expect(409, http.MethodPost, allocationsPath, `{"id":"a","resource_group":{"resources":[{"count":1}]}}`)
	if got := s.fleet.Snapshot().Revision(); got != written {
		t.Errorf("revision %d, want %d", got, written)
	}
	list := s.expect(200, http.MethodGet, "/v1/namespaces/default/workloads", "")
	var items struct{ Items []json.RawMessage }
	if err := json.Unmarshal(list.body, &items); err != nil || len(items.Items) > 0 {
		t.Errorf("allocations %s, want none (%v)", list.body, err)
	}
}
