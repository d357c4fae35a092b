//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestControlPlane checks that the control plane of these tests behaves like a real one, and that the checks of its
// history can fail.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	p := startControlPlane(t)
	h := record(t, p)
	p.addNodes(onDemandNode, 1, nil)
	spot := p.addNodes(spotNode, 2, nil)
	p.namespace("self", nil)
	web := p.create(manifest{workloadID: workloadID{"Deployment", "self", "web"}, replicas: 5, readyAfter: 300 * time.Millisecond})
	db := p.create(manifest{workloadID: workloadID{"StatefulSet", "self", "db"}, replicas: 3, readyAfter: 100 * time.Millisecond})
	complete := func(w workloadID) {
		t.Helper()
		if got, ok := becomes(h, w, counts.complete); !ok {
			t.Fatalf("%s is not complete: %s", w, got)
		}
	}
	complete(web)
	complete(db)

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(p.kubeconfig(userServer).Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	server, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	end := func(client *kubernetes.Clientset, name string) {
		t.Helper()
		if err := client.CoreV1().Pods("self").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	worst := func(w workloadID) int {
		for _, o := range h.outages(userServer, p.endings()) {
			if o.workload == w {
				return o.pods
			}
		}
		return 0
	}
	pods := func(w workloadID) []podState { return h.podsOf(w) }
	gone := func(uid string) {
		t.Helper()
		eventually.True(t, "the pod is deleted", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			_, present := h.present[uid]
			return !present
		})
	}

	// Two that others end, and two that the server ends one by one.
	two := pods(web)[:2]
	end(p.client, two[0].name)
	end(p.client, two[1].name)
	gone(two[1].uid)
	complete(web)
	if n := worst(web); n != 0 {
		t.Errorf("others deleted pods, but %d count as the server's", n)
	}
	for _, w := range []workloadID{web, db, db} {
		first := pods(w)[0]
		end(server, first.name)
		gone(first.uid)
		complete(w)
	}
	if n := worst(web); n != 1 {
		t.Errorf("the server deleted one pod, but %d were missing at once", n)
	}
	if n := worst(db); n != 1 {
		t.Errorf("the server deleted two pods of one name one after the other, but %d were missing at once", n)
	}
	if n := len(h.replaced(userServer, p.endings())[db]); n != 2 {
		t.Errorf("the server deleted two pods of one name, but %d were found", n)
	}
	// Two at once.
	two = pods(web)[:2]
	end(server, two[0].name)
	end(server, two[1].name)
	gone(two[1].uid)
	complete(web)
	if n := worst(web); n != 2 {
		t.Errorf("the server deleted two pods at once, but %d were missing:\n%s", n, h.story(web, p.endings()))
	}

	// A node is lost, and returns.
	for _, node := range spot {
		p.lose(node)
	}
	if got, ok := becomes(h, web, func(c counts) bool { return c.complete() && c.onDemandNodes == 5 }); !ok {
		t.Errorf("the spot nodes failed: %s", got)
	}
	for _, node := range spot {
		p.restore(node)
	}
	p.clear(h, "self")
}
