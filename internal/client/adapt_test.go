package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// What only the server knows keeps its value when the rest is replaced, and what only this program knows is not sent.
func TestOtherFields(t *testing.T) {
	const present = `{"kind":"cluster","metadata":{"name":"a"},"spec":{
		"region":"eu","future":{"x":[1,2]},"health":{"url":"http://a/","future":"h"},
		"taints":[{"key":"gpu","effect":"NoSelect","future":true},{"key":"b","effect":"NoSelect"}]}}`
	for _, test := range []struct {
		name   string
		change func(*api.Cluster)
		want   []string
		fails  string
	}{
		{name: "nothing of it", change: func(c *api.Cluster) { c.Spec.Region = "us" },
			want: []string{`"future":{"x":[1,2]}`, `"future":"h"`, `"future":true`, `"region":"us"`}},
		{name: "an element moves", change: func(c *api.Cluster) { c.Spec.Taints[0], c.Spec.Taints[1] = c.Spec.Taints[1], c.Spec.Taints[0] },
			want: []string{`{"effect":"NoSelect","future":true,"key":"gpu"}`}},
		{name: "an element changes", change: func(c *api.Cluster) { c.Spec.Taints[0].Key = "cpu" }, fails: "spec.taints[0]"},
		{name: "a block is removed", change: func(c *api.Cluster) { c.Spec.Health = nil }, want: []string{`"future":true`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sent string
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					body, _ := io.ReadAll(r.Body)
					sent = string(body)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, present)
			})
			object, err := c.Get(t.Context(), api.Key{Kind: api.KindCluster, Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			cluster, _ := object.(*api.Cluster)
			test.change(cluster)
			_, err = c.Put(t.Context(), cluster, client.PutOptions{CarryOver: true, LeaveOut: []string{"spec.paused", "spec.taints.*.value"}})
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || sent != "" {
					t.Errorf("sent %s, %v", sent, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(sent, want) {
					t.Errorf("%s is missing in %s", want, sent)
				}
			}
			for _, unknown := range []string{"paused", `"value"`} {
				if strings.Contains(sent, unknown) {
					t.Errorf("%s is in %s", unknown, sent)
				}
			}
		})
	}
}
