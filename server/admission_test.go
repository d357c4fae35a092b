package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// tinyKubernetes has one node of each type and a Deployment that is split. It records the webhook configurations that
// are written.
type tinyKubernetes struct {
	*httptest.Server
	mu      sync.Mutex
	written []string
}

func newTinyKubernetes(t *testing.T) *tinyKubernetes {
	k := &tinyKubernetes{}
	lists := map[string]string{
		"pods": "v1/PodList", "namespaces": "v1/NamespaceList", "statefulsets": "apps/v1/StatefulSetList",
		"nodes": "v1/NodeList", "deployments": "apps/v1/DeploymentList", "replicasets": "apps/v1/ReplicaSetList",
	}
	node := `{"metadata":{"name":%q,"uid":%q,"labels":{"` + api.DefaultNodeTypeKey + `":%[1]q}},"status":{"allocatable":{"cpu":"8","memory":"16Gi","pods":"100"},"conditions":[{"type":"Ready","status":"True"}]}}`
	template := `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web"}]}}`
	items := map[string]string{
		"nodes":       fmt.Sprintf(node, "on-demand", "n1") + "," + fmt.Sprintf(node, "spot", "n2"),
		"namespaces":  `{"metadata":{"name":"shop","uid":"s"}}`,
		"deployments": `{"metadata":{"name":"web","namespace":"shop","uid":"d","labels":{"vacant.io/optimize-scheduling":"true"}},"spec":{"replicas":4,"selector":{"matchLabels":{"app":"web"}},"template":` + template + `}}`,
		"replicasets": `{"metadata":{"name":"web-1","namespace":"shop","uid":"rs","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"d","controller":true}]},"spec":{"replicas":4,"selector":{"matchLabels":{"app":"web"}},"template":` + template + `}}`,
	}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		refuse := func(code int, reason string) {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
		}
		resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		list, listed := lists[resource]
		query := r.URL.Query()
		switch {
		case r.Method != http.MethodGet:
			body, _ := io.ReadAll(r.Body)
			k.mu.Lock()
			k.written = append(k.written, string(body))
			k.mu.Unlock()
			refuse(http.StatusForbidden, "Forbidden")
		case !listed:
			refuse(http.StatusNotFound, "NotFound")
		case query.Get("sendInitialEvents") != "":
			refuse(http.StatusBadRequest, "Invalid")
		case query.Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			at := strings.LastIndexByte(list, '/')
			fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[%s]}`, list[:at], list[at+1:], items[resource])
		}
	}))
	t.Cleanup(k.Close)
	return k
}

// secret returns the secret part of the webhook URL written for the cluster, or "" if none was.
func (k *tinyKubernetes) secret() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, body := range k.written {
		if found := regexp.MustCompile(`/clusters/berlin/([A-Za-z0-9_=-]+)/pods`).FindStringSubmatch(body); found != nil {
			return found[1]
		}
	}
	return ""
}

// TestEveryServerSplitsPods checks that a pod gets the same node type from every server, and that only the leader
// installs the webhook.
func TestEveryServerSplitsPods(t *testing.T) {
	k := newTinyKubernetes(t) // ends after the servers
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile, c.Lease = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key"), lease
	var servers []*runningServer
	var webhooks []string
	for i := range 2 {
		c.Name, c.WebhookListen = fmt.Sprint("server-", i), proxytest.FreeAddress(t)
		servers, webhooks = append(servers, start(t, c)), append(webhooks, c.WebhookListen)
	}
	berlin := cluster("berlin")
	berlin.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x","user":{"token":"t"}}],"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}`, k.URL))}
	berlin.Spec.Spot = &api.SpotSpec{Enabled: true}
	berlin.SetDefaults()
	put(servers[1], berlin)
	eventually.True(t, "the webhook is installed", func() bool { return k.secret() != "" })

	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(caller.CloseIdleConnections)
	pods := 0
	admit := func(webhook string) (patch string) {
		pods++
		review, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: types.UID(fmt.Sprint(pods)), Namespace: "shop", Operation: admissionv1.Create}})
		if err != nil {
			t.Fatal(err)
		}
		pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-1-","namespace":"shop","labels":{"app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"rs","controller":true}]},"spec":{"containers":[{"name":"web"}]}}`
		review = bytes.Replace(review, []byte(`"object":null`), []byte(`"object":`+pod), 1)
		review = bytes.Replace(review, []byte(`{"request"`), []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request"`), 1)
		review = bytes.Replace(review, []byte(`"kind":{"group":"","version":"","kind":""}`), []byte(`"kind":{"group":"","version":"v1","kind":"Pod"}`), 1)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+webhook+"/clusters/berlin/"+k.secret()+"/pods", bytes.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := caller.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var answer admissionv1.AdmissionReview
		if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&answer) != nil || answer.Response == nil || !answer.Response.Allowed {
			return ""
		}
		return string(answer.Response.Patch)
	}
	splits := func(webhook string) bool { return strings.Contains(admit(webhook), "vacant.io") }
	for i, webhook := range webhooks {
		eventually.True(t, fmt.Sprintf("server %d splits pods", i), func() bool { return splits(webhook) })
	}
	k.mu.Lock()
	for _, body := range k.written {
		if strings.Contains(body, "/clusters/berlin/") && !strings.Contains(body, webhooks[0]) {
			t.Errorf("a server that is not the leader installed %s", body)
		}
	}
	k.mu.Unlock()

	if err := servers[0].stop(); err != nil {
		t.Fatal(err)
	}
	servers[1].leads()
	eventually.True(t, "the next leader splits pods", func() bool { return splits(webhooks[1]) })
}
