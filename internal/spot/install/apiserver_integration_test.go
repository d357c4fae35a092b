//go:build integration

package install

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionreview "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/certificate"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// apiServer is a real API server, with its administrator.
type apiServer struct {
	config *rest.Config
	client kubernetes.Interface
}

func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	etcd, _ := storetest.Etcd(t)

	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	certtest.Write(t, file("sa.key"), certtest.Authority(t).KeyPEM())
	template := certtest.Loopback("kube-apiserver")
	template.IsCA, template.BasicConstraintsValid = true, true
	server := certtest.SelfSigned(t, template)
	server.Write(t, file("server.crt"), file("server.key"))
	tokens := "admin-token,admin,1,\"system:masters\"\nweak-token,weak,2\n"
	if err := os.WriteFile(file("tokens"), []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	testbed := os.Getenv("SCHEDULER_TESTBED")
	if testbed == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		testbed = filepath.Join(home, ".cache", "scheduler-testbed")
	}
	binary := filepath.Join(testbed, "bin", "kube-apiserver")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("no kube-apiserver, %v: run scripts/build-kubernetes.sh", err)
	}
	address := proxytest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	var log bytes.Buffer
	cmd := exec.Command(binary,
		"--etcd-servers=http://"+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/16",
		"--tls-cert-file="+file("server.crt"), "--tls-private-key-file="+file("server.key"), "--token-auth-file="+file("tokens"),
		"--service-account-issuer=https://test", "--service-account-key-file="+file("sa.key"), "--service-account-signing-key-file="+file("sa.key"),
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the end of the API server's log:\n%s", log.Bytes()[max(0, log.Len()-3000):])
		}
	})
	config := &rest.Config{Host: "https://" + address, BearerToken: "admin-token", TLSClientConfig: rest.TLSClientConfig{CAData: server.PEM()}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{config, client}
	eventually.True(t, "the API server is ready", func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil && client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error() == nil
	})
	return s
}

// hook is a webhook that records its requests.
type hook struct {
	server *http.Server
	addr   string

	mu    sync.Mutex
	asked []string // "path operation namespace/name"
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionreview.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/'):]
	var object metav1.PartialObjectMetadata
	_ = json.Unmarshal(review.Request.Object.Raw, &object)
	h.mu.Lock()
	h.asked = append(h.asked, strings.Join([]string{path, string(review.Request.Operation), object.Namespace + "/" + object.Name}, " "))
	h.mu.Unlock()
	review.Response = &admissionreview.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if path == "/probe" {
		patch, _ := json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/annotations", "value": map[string]string{spot.LabelProbe: object.Labels[spot.LabelProbe]}}})
		review.Response.Patch, review.Response.PatchType = patch, new(admissionreview.PatchTypeJSONPatch)
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// take returns the requests since the last call, without probes. The API server repeats a request if someone else
// changes the object in the meantime.
func (h *hook) take() (asked []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.asked {
		if !strings.HasPrefix(a, "/probe") {
			asked = append(asked, a)
		}
	}
	h.asked = nil
	return slices.Compact(asked)
}

func (h *hook) listen(t *testing.T, config *tls.Config) {
	t.Helper()
	listener, err := net.Listen("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	h.server = &http.Server{Handler: h, TLSConfig: config, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	server := h.server
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
}

func newAuthority(t *testing.T) *certificate.Authority {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Options{DataDir: filepath.Join(dir, "data"), NoFsync: true, MinFreeBytes: 1 << 20, RequestTimeout: storetest.Patience, Patience: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	codec, err := store.OpenCodec(filepath.Join(dir, "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := certificate.New(certificate.Options{Store: s, Sealer: codec, Hosts: []string{"127.0.0.1"}})
	if err == nil {
		err = authority.Open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func run(t *testing.T, client kubernetes.Interface, h *hook, authority *certificate.Authority, log io.Writer) (i *Installer, stop func()) {
	t.Helper()
	i, err := New(Options{
		Client: client, Cluster: "one", BaseURL: "https://" + h.addr + "/clusters/one/" + authority.Secret("uid"), Bundle: authority.Bundle,
		ExcludeNamespaces: []string{"scheduler-system"}, Interval: time.Second, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = i.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return i, stop
}

func waitFor(t *testing.T, i *Installer, reason string) {
	t.Helper()
	end := time.After(time.Minute)
	for {
		changed := i.Changed()
		if i.State().Reason == reason {
			return
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("the state is %+v, want %s", i.State(), reason)
		}
	}
}
