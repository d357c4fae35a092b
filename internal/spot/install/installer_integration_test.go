//go:build integration

package install

import (
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// object returns a pod, or a workload without replicas.
func object(apiVersion, kind, namespace, name string, metadata map[string]any) *unstructured.Unstructured {
	pod := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": pod}}
	if kind != "Pod" {
		labels := map[string]any{"app": "x"}
		o.Object["spec"] = map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod},
		}
	}
	meta := map[string]any{"name": name, "namespace": namespace}
	for k, v := range metadata {
		meta[k] = v
	}
	o.Object["metadata"] = meta
	return o
}

func ownedBy(apiVersion, kind string) map[string]any {
	return map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": apiVersion, "kind": kind, "name": "o", "uid": "u", "controller": true,
	}}}
}

func labels(pairs ...string) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return map[string]any{"labels": m}
}

func TestRealAPIServer(t *testing.T) {
	s := startAPIServer(t)
	authority := newAuthority(t)
	h := &hook{addr: proxytest.FreeAddress(t)}
	h.listen(t, authority.TLSConfig())
	var log logtest.Buffer
	i, stop := run(t, s.client, h, authority, &log)
	waitFor(t, i, reasonInstalled)
	dynamicClient, err := dynamic.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{
		"scheduler-system": nil, "off": {"vacant.io/optimize-scheduling": "false"}, "off-too": {"vacant.sh/optimize-scheduling": "false"},
	} {
		if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	h.take()

	merged := func(a, b map[string]any) map[string]any {
		for k, v := range b {
			a[k] = v
		}
		return a
	}
	created := []struct {
		object *unstructured.Unstructured
		asked  string
	}{
		{object("v1", "Pod", "default", "of-replica-set", ownedBy("apps/v1", "ReplicaSet")), "/pods CREATE default/of-replica-set"},
		{object("v1", "Pod", "default", "of-stateful-set", ownedBy("apps/v1", "StatefulSet")), "/pods CREATE default/of-stateful-set"},
		{object("v1", "Pod", "default", "of-job", ownedBy("batch/v1", "Job")), ""},
		{object("v1", "Pod", "default", "of-another-group", ownedBy("x.example.com/v1", "StatefulSet")), ""},
		{object("v1", "Pod", "default", "of-nobody", nil), ""},
		{object("v1", "Pod", "default", "opted-out", merged(ownedBy("apps/v1", "ReplicaSet"), labels("vacant.io/optimize-scheduling", "false"))), ""},
		{object("v1", "Pod", "kube-system", "of-the-system", ownedBy("apps/v1", "ReplicaSet")), ""},
		{object("v1", "Pod", "scheduler-system", "of-the-server", ownedBy("apps/v1", "ReplicaSet")), ""},
		{object("v1", "Pod", "off", "in-namespace-off", ownedBy("apps/v1", "ReplicaSet")), ""},
		{object("v1", "Pod", "off-too", "in-namespace-off-too", ownedBy("apps/v1", "ReplicaSet")), ""},
		{object("apps/v1", "Deployment", "default", "plain", nil), ""},
		{object("apps/v1", "Deployment", "default", "labelled", labels("vacant.io/optimize-scheduling", "true")), "/workloads CREATE default/labelled"},
		{object("apps/v1", "StatefulSet", "default", "other-prefix", labels("vacant.sh/optimize-scheduling-mode", "x")), "/workloads CREATE default/other-prefix"},
		{object("apps/v1", "StatefulSet", "default", "annotated", map[string]any{"annotations": map[string]any{"vacant.io/optimize-scheduling-mode-custom-on-demand": "30%"}}), "/workloads CREATE default/annotated"},
		{object("apps/v1", "Deployment", "default", "switched-off", labels("vacant.io/optimize-scheduling", "false")), "/workloads CREATE default/switched-off"},
		{object("apps/v1", "Deployment", "off", "in-namespace-off", labels("vacant.io/optimize-scheduling", "maybe")), "/workloads CREATE off/in-namespace-off"},
		{object("apps/v1", "Deployment", "kube-system", "of-the-system", labels("vacant.io/optimize-scheduling", "true")), ""},
		{object("apps/v1", "ReplicaSet", "default", "bare", labels("vacant.io/optimize-scheduling", "true")), ""},
	}
	resources := map[string]schema.GroupVersionResource{
		"Pod": {Version: "v1", Resource: "pods"}, "Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
		"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"}, "ReplicaSet": {Group: "apps", Version: "v1", Resource: "replicasets"},
	}
	for _, c := range created {
		resource := dynamicClient.Resource(resources[c.object.GetKind()]).Namespace(c.object.GetNamespace())
		if _, err := resource.Create(t.Context(), c.object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", c.object.GetName(), err)
		}
		if got := strings.Join(h.take(), ", "); got != c.asked {
			t.Errorf("%s %s: the webhook got the requests %q, want %q", c.object.GetKind(), c.object.GetName(), got, c.asked)
		}
	}

	patched := []struct {
		name, patch, asked string
	}{
		{"of-nobody", `{"metadata":{"labels":{"app":"x"}}}`, ""},
		{"of-nobody", `{"metadata":{"labels":{"vacant.io/affinity":"spot"}}}`, "/pod-labels UPDATE default/of-nobody"},
		{"of-nobody", `{"metadata":{"labels":{"app":"y"}}}`, ""},
		{"of-nobody", `{"metadata":{"labels":{"vacant.io/affinity":"on-demand"}}}`, "/pod-labels UPDATE default/of-nobody"},
		{"of-nobody", `{"metadata":{"labels":{"vacant.io/affinity":null}}}`, "/pod-labels UPDATE default/of-nobody"},
		{"of-job", `{"metadata":{"labels":{"vacant.sh/affinity":"spot"}}}`, "/pod-labels UPDATE default/of-job"},
		{"of-job", `{"metadata":{"annotations":{"a":"b"}}}`, ""},
	}
	for _, p := range patched {
		if _, err := s.client.CoreV1().Pods("default").Patch(t.Context(), p.name, types.MergePatchType, []byte(p.patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(h.take(), ", "); got != p.asked {
			t.Errorf("%s %s: the webhook got the requests %q, want %q", p.name, p.patch, got, p.asked)
		}
	}

	if _, err := s.client.CoreV1().ConfigMaps("default").Get(t.Context(), probeName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the probe was stored: %v", err)
	}
	mutating, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), configurationName, metav1.GetOptions{})
	if err != nil || mutating.Generation != 1 {
		t.Errorf("the configuration was written %d times, want once; %v", mutating.Generation, err)
	}

	// The webhook stops, and someone breaks the configuration, so that it is tried at once.
	_ = h.server.Close()
	mutating.Webhooks[0].FailurePolicy = nil
	if _, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), mutating, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the drift is repaired", func() bool {
		now, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), configurationName, metav1.GetOptions{})
		return err == nil && *now.Webhooks[0].FailurePolicy == "Ignore"
	})

	// The state says what is wrong, and pods are created nevertheless.
	waitFor(t, i, reasonNotReached)
	if message := said(i.State()); !strings.Contains(message, "connection refused") || !strings.Contains(message, h.addr) {
		t.Errorf("message %q does not contain the cause", message)
	}
	if _, err := dynamicClient.Resource(resources["Pod"]).Namespace("default").Create(t.Context(), object("v1", "Pod", "default", "later", ownedBy("apps/v1", "ReplicaSet")), metav1.CreateOptions{}); err != nil {
		t.Errorf("no pod can be created without the webhook: %v", err)
	}
	// Another server responds in its place, with its own certificate.
	h.listen(t, newAuthority(t).TLSConfig())
	eventually.True(t, "the certificate is rejected", func() bool { return strings.Contains(said(i.State()), "x509") })
	_ = h.server.Close()
	h.listen(t, authority.TLSConfig())
	waitFor(t, i, reasonInstalled)

	stop()
	if err := i.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d configurations left, want none; %v", len(left.Items), err)
	}
	if strings.Contains(log.String(), authority.Secret("uid")) {
		t.Errorf("the log contains the secret:\n%s", log.String())
	}
	t.Logf("\n%s", log.String())
}

// The permissions in the guide suffice, and all of them are needed.
func TestPermissions(t *testing.T) {
	s := startAPIServer(t)
	authority := newAuthority(t)
	h := &hook{addr: proxytest.FreeAddress(t)}
	h.listen(t, authority.TLSConfig())
	weak := rest.CopyConfig(s.config)
	weak.BearerToken = "weak-token"
	client, err := kubernetes.NewForConfig(weak)
	if err != nil {
		t.Fatal(err)
	}
	var log logtest.Buffer
	i, stop := run(t, client, h, authority, &log)
	waitFor(t, i, reasonForbidden)
	if m := said(i.State()); !strings.Contains(m, "mutatingwebhookconfigurations") || !strings.Contains(m, "validatingwebhookconfigurations") {
		t.Errorf("message %q does not name the missing permissions", m)
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "weak"}}
	kinds := []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "installer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: kinds, Verbs: []string{"create"}},
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: kinds, ResourceNames: []string{configurationName}, Verbs: []string{"get", "update", "delete"}},
	}}
	if _, err := s.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "installer"}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "installer"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the probe is forbidden", func() bool {
		m := said(i.State())
		return i.State().Reason == reasonForbidden && strings.Contains(m, "configmaps in namespace default")
	})
	if _, err := s.client.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "probe"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, i, reasonInstalled)
	mutating, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), configurationName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mutating.Webhooks = nil
	if _, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), mutating, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the drift is repaired", func() bool {
		now, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), configurationName, metav1.GetOptions{})
		return err == nil && len(now.Webhooks) == 2
	})
	stop()
	if err := i.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", log.String())
}
