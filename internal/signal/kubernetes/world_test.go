package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// identity is the self-signed certificate of every API server; authority is the same in a kubeconfig.
var (
	identity  tls.Certificate
	authority string
)

func TestMain(m *testing.M) {
	if err := identify(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func identify() error {
	// Valid in the year 2000, too, when the clocks of the tests start.
	template := x509.Certificate{
		Subject: pkix.Name{CommonName: "api"}, DNSNames: []string{"eu", "good", "elsewhere"},
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	for i := range 3 * informer.ListsAtOnce {
		template.DNSNames = append(template.DNSNames, fmt.Sprint("bad", i))
	}
	certificate, err := certtest.Sign(template, nil)
	if err != nil {
		return err
	}
	identity = certificate.TLS()
	authority = base64.StdEncoding.EncodeToString(certificate.PEM())
	return nil
}

// world is an observer and a monitor, with API servers by host and a store that the test can inspect and break.
type world struct {
	t        *testing.T
	observer *Observer
	monitor  *health.Monitor
	tracker  *firstread.Tracker
	stop     func()

	mu       sync.Mutex
	servers  map[string]*apiServer
	revision int64
	clusters map[string]*api.Cluster
	specs    map[string]int64
	writes   int
	opened   int // connections
	states   map[string][]string
	probe    int // status of the responses to probes of a health URL
}

// RoundTrip implements http.RoundTripper for the probes of health URLs.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &http.Response{StatusCode: w.probe, Status: fmt.Sprint(w.probe), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// inWorld runs a test with a simulated clock, and checks that nothing is left running.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, servers: map[string]*apiServer{}, clusters: map[string]*api.Cluster{}, specs: map[string]int64{}, states: map[string][]string{}, probe: http.StatusOK,
		}
		w.start()
		test(t, w)
		w.stop()
		for _, s := range w.servers {
			s.stop()
		}
		synctest.Wait()
	})
}

// start runs a new observer on the stored objects.
func (w *world) start() {
	w.tracker = firstread.New()
	w.monitor = health.New(health.Options{Network: addresspolicy.OnLoopback(), Writer: w, Tracker: w.tracker, RoundTripper: w})
	w.observer = New(Options{Informers: informer.NewGroup(kube.New(addresspolicy.OnLoopback(), w.dial), nil), Sink: w.monitor})
	for name, c := range w.clusters {
		w.monitor.Put(c, w.specs[name], w.specs[name], w.specs[name])
		w.observer.Put(c)
	}
	w.tracker.Advance(w.revision)
	ctx, cancel := context.WithCancel(w.t.Context())
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{w.monitor.Run, w.observer.Run} {
		group.Go(func() {
			if err := run(ctx); err != nil {
				w.t.Error(err)
			}
		})
	}
	w.stop = func() { cancel(); group.Wait() }
}

func (w *world) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	s := w.servers[host]
	w.opened++
	w.mu.Unlock()
	if s == nil || s.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return s.listener.dial()
}

// server starts the API server of a host.
func (w *world) server(host string) *apiServer {
	s := newAPIServer(w.t)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[host] = s
	return s
}

// WriteOne implements status.Writer. Statuses are encoded before they are stored.
func (w *world) WriteOne(_ context.Context, write status.Write) (int64, error) {
	c := write.Object.(*api.Cluster)
	data, err := json.Marshal(c.Status)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := c.Metadata.Name
	if w.specs[name] != write.SpecRevision {
		return 0, &status.StaleError{Keys: []api.Key{api.KeyOf(c)}}
	}
	stored := *w.clusters[name]
	stored.Status = api.ClusterStatus{}
	if err := json.Unmarshal(data, &stored.Status); err != nil {
		return 0, err
	}
	w.clusters[name] = &stored
	w.revision++
	w.writes++
	if seen := w.states[name]; len(seen) == 0 || seen[len(seen)-1] != string(stored.Status.State) {
		w.states[name] = append(seen, string(stored.Status.State))
	}
	return w.revision, nil
}

// put writes a cluster and waits until the signals have settled.
func (w *world) put(c *api.Cluster) (took time.Duration) {
	w.t.Helper()
	began := time.Now()
	revision := w.write(c)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	if _, err := w.tracker.Wait(ctx, revision); err != nil {
		w.t.Fatal(err)
	}
	return time.Since(began)
}

// write writes a cluster.
func (w *world) write(c *api.Cluster) (revision int64) {
	w.t.Helper()
	c.SetDefaults()
	if err := c.Validate().Err(); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.revision++
	revision = w.revision
	name := c.Metadata.Name
	now := time.Now().UTC()
	c.Metadata.UID, c.Metadata.ModifiedAt = "uid-"+name, &now
	if old := w.clusters[name]; old != nil {
		c.Status, c.Metadata.Generation = old.Status, old.Metadata.Generation
	}
	c.Metadata.Generation++
	w.clusters[name], w.specs[name] = c, revision
	w.mu.Unlock()
	w.monitor.Put(c, revision, revision, revision)
	w.observer.Put(c)
	w.tracker.Advance(revision)
	return revision
}

func (w *world) status(name string) api.ClusterStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clusters[name].Status
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// history returns the states of a cluster, in order.
func (w *world) history(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.states[name], " ")
}

func (w *world) expect(name string, state api.ClusterState, observed api.ConditionStatus, reason string) {
	w.t.Helper()
	s := w.status(name)
	if s.State != state {
		w.t.Errorf("%s: state %q, want %q; conditions %+v", name, s.State, state, s.Conditions)
	}
	c := api.FindCondition(s.Conditions, api.ConditionObserved)
	if c == nil || c.Status != observed || c.Reason != reason || c.Message == "" {
		w.t.Errorf("%s: condition %+v, want %s %s", name, c, observed, reason)
	}
}

// steady checks that nothing is written while nothing changes.
func (w *world) steady(d time.Duration) {
	w.t.Helper()
	synctest.Wait() // for everything that is due now
	before := w.count()
	faketime.Sleep(d)
	synctest.Wait()
	if after := w.count(); after != before {
		w.t.Errorf("%d writes in %s without a change", after-before, d)
	}
}

// on returns a cluster whose API server is at a host.
func on(name, host string) *api.Cluster {
	return &api.Cluster{
		Metadata: api.Metadata{Name: name},
		Spec:     api.ClusterSpec{Kubernetes: &api.KubernetesSpec{Kubeconfig: kubeconfigOf(host, "hush-hush")}},
	}
}

func kubeconfigOf(host, token string) api.Secret {
	return api.NewSecret(fmt.Sprintf(`
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://%s", certificate-authority-data: %s}}]
users: [{name: u, user: {token: %q}}]
`, host, authority, token))
}

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// machine returns a node with 4 CPUs and 16 GiB, of which 3500m and 15 GiB are for pods.
func machine(name string, more ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Capacity = list("cpu", "4", "memory", "16Gi", "pods", "110")
	n.Status.Allocatable = list("cpu", "3500m", "memory", "15Gi", "pods", "110")
	says(corev1.NodeReady, corev1.ConditionTrue)(n)
	for _, f := range more {
		f(n)
	}
	return n
}

func says(condition corev1.NodeConditionType, status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == condition {
				n.Status.Conditions[i].Status = status
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: condition, Status: status})
	}
}

func in(region, zone string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels = map[string]string{corev1.LabelTopologyRegion: region, corev1.LabelTopologyZone: zone}
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// running returns a pod on a node with the given requests.
func running(name, node string, requests ...string) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(requests...)}}}
	return p
}

func definition(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}
