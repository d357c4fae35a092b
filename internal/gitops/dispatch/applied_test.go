package dispatch

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestNomination writes a nomination beside what Kueue has applied, of which nothing may be left out, and nothing of others
// added.
func TestNomination(t *testing.T) {
	const status = `{
		"admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "default"}, "count": 1}]},
		"conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "PodsReady", "status": "False"}],
		"admissionChecks": [{"name": "mk", "state": "Pending"}, {"name": "other", "state": "Ready", "podSetUpdates": []}],
		"numbers": [1, 2, 3], "reclaimablePods": [{"name": "main", "count": 2}], "nominatedClusterNames": ["paris"]}`
	for _, test := range []struct {
		name     string
		manager  string
		fields   string
		version  string
		clusters []string
		want     string
		err      string
	}{
		{name: "Kueue has applied nothing", manager: "kueue", fields: `{"f:status":{"f:conditions":{}}}`, clusters: []string{"rome"}, want: `{"nominatedClusterNames":["rome"]}`},
		{name: "an object", fields: `{"f:status":{"f:admission":{"f:clusterQueue":{}}}}`, clusters: []string{"rome"},
			want: `{"admission":{"clusterQueue":"q"},"nominatedClusterNames":["rome"]}`},
		{name: "all of a list and of an object", fields: `{"f:status":{"f:admission":{},"f:numbers":{}}}`, clusters: []string{"rome", "oslo"},
			want: `{"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"flavors":{"cpu":"default"},"name":"main"}]},"nominatedClusterNames":["rome","oslo"],"numbers":[1,2,3]}`},
		{name: "items by keys", fields: `{"f:status":{"f:conditions":{"k:{\"type\":\"QuotaReserved\"}":{".":{},"f:type":{},"f:status":{}}},"f:admissionChecks":{"k:{\"name\":\"other\"}":{".":{},"f:name":{},"f:podSetUpdates":{}}}}}`,
			want: `{"admissionChecks":[{"name":"other","podSetUpdates":[]}],"conditions":[{"status":"True","type":"QuotaReserved"}]}`},
		{name: "items by value", fields: `{"f:status":{"f:numbers":{"v:1":{},"v:3":{}}}}`, want: `{"numbers":[1,3]}`},
		{name: "an empty list", fields: `{"f:status":{"f:reclaimablePods":{".":{}}}}`, want: `{"reclaimablePods":[]}`},
		{name: "a field that has gone", fields: `{"f:status":{"f:clusterName":{}}}`, want: `{}`},
		{name: "no clusters any more", fields: `{"f:status":{"f:nominatedClusterNames":{}}}`, want: `{}`},
		{name: "other clusters", fields: `{"f:status":{"f:nominatedClusterNames":{}}}`, clusters: []string{"oslo"}, want: `{"nominatedClusterNames":["oslo"]}`},
		{name: "another version", fields: `{"f:status":{"f:admission":{}}}`, version: "kueue.x-k8s.io/v1beta1", err: "upgrade Kueue"},
		{name: "fields that cannot be read", fields: `[]`, err: "its managedFields of kueue-admission"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			if err := json.Unmarshal([]byte(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w", "namespace": "shop", "uid": "1", "resourceVersion": "7"}, "status": `+status+`}`), &u.Object); err != nil {
				t.Fatal(err)
			}
			manager, version := test.manager, test.version
			if manager == "" {
				manager = fieldManager
			}
			if version == "" {
				version = "kueue.x-k8s.io/v1beta2"
			}
			u.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", APIVersion: version, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:numbers":{}}}`)},
				{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", APIVersion: version, FieldsV1: metav1.NewFieldsV1(test.fields)},
			})
			before := u.DeepCopy()
			apply, err := nomination(u, test.clusters)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(apply.Object["status"])
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if apply.GetResourceVersion() != "7" || apply.GetUID() != "1" || apply.GetName() != "w" || apply.GetNamespace() != "shop" || apply.GetKind() != "Workload" || apply.GetManagedFields() != nil {
				t.Errorf("got %v", apply.Object)
			}
			if after, err := json.Marshal(u); err != nil || string(after) != string(must(t, before)) {
				t.Errorf("the Workload was changed (%v): %s", err, after)
			}
		})
	}
}

func must(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzPart reads managedFields that no API server would write: no panic, and nothing that is not in the object.
func FuzzPart(f *testing.F) {
	f.Add(`{"f:a":{"k:{\"b\":1}":{".":{},"f:b":{}}}}`, `{"a":[{"b":1,"c":2},3]}`)
	f.Add(`{"f:a":{"v:3":{}}}`, `{"a":[3]}`)
	f.Fuzz(func(t *testing.T, fields, object string) {
		var set map[string]any
		var value any
		if json.Unmarshal([]byte(fields), &set) != nil || json.Unmarshal([]byte(object), &value) != nil {
			return
		}
		before := string(must(t, value))
		if some := must(t, part(value, set)); len(some) > len(before) {
			t.Errorf("%s of %s is %s", fields, object, some)
		}
		if string(must(t, value)) != before {
			t.Error("the object was changed")
		}
	})
}
