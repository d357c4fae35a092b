package install

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testSecret = "0123456789abcdef0123456789abcdef"
	testBase   = "https://scheduler.example.com:8443/clusters/one/" + testSecret
)

// request is one that the cluster received.
type request struct {
	verb, resource string
	at             time.Time
}

// world is a cluster with an installer.
type world struct {
	t      *testing.T
	client *fake.Clientset
	log    logtest.Buffer
	*Installer

	mu       sync.Mutex
	requests []request
	// fail makes a request fail if it returns an error. answer is the webhook's response; nil = the nonce.
	fail   func(verb, resource string) error
	answer func(nonce string) string
	// alter is how the cluster changes configurations that are written.
	alter   func(*admissionv1.MutatingWebhookConfiguration)
	bundle  []byte
	renewed chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(), bundle: []byte("first"), renewed: make(chan struct{})}
	w.client.PrependReactor("*", "*", w.react)
	var err error
	w.Installer, err = New(Options{
		Client: w.client, Cluster: "one", BaseURL: testBase, ExcludeNamespaces: []string{"scheduler-system", "kube-system"},
		Bundle: func() ([]byte, <-chan struct{}) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.bundle), w.renewed
		},
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) react(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	verb, resource := action.GetVerb(), action.GetResource().Resource
	w.requests = append(w.requests, request{verb, resource, time.Now()})
	if w.fail != nil {
		if err := w.fail(verb, resource); err != nil {
			return true, nil, err
		}
	}
	write, ok := action.(clienttesting.CreateAction) // updates look the same
	if !ok {
		return false, nil, nil
	}
	switch object := write.GetObject().(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		if w.alter != nil {
			w.alter(object)
		}
	case *corev1.ConfigMap:
		object = object.DeepCopy()
		nonce := object.Labels[spot.LabelProbe]
		if w.answer != nil {
			nonce = w.answer(nonce)
		}
		object.Annotations = map[string]string{spot.LabelProbe: nonce}
		return true, object, nil
	}
	return false, nil, nil
}

func (w *world) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// count returns the number of requests that contain a text, such as "verb resource".
func (w *world) count(part string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if strings.Contains(r.verb+" "+r.resource, part) {
			n++
		}
	}
	return n
}

// start runs the installer until the test ends.
func (w *world) start() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
}

// pass advances the clock.
func pass(d time.Duration) {
	faketime.Sleep(d)
	synctest.Wait()
}

func (w *world) mutatingNow() *admissionv1.MutatingWebhookConfiguration {
	w.t.Helper()
	c, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(w.t.Context(), configurationName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) validatingNow() *admissionv1.ValidatingWebhookConfiguration {
	w.t.Helper()
	c, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.t.Context(), configurationName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// wantState checks the state, and that nothing contains the secret.
func (w *world) wantState(reason string, says ...string) {
	w.t.Helper()
	s := w.State()
	if s.Reason != reason || s.Ready != (reason == reasonInstalled) {
		w.t.Errorf("the state is %+v, want %s", s, reason)
	}
	for _, part := range says {
		if !strings.Contains(said(s), part) {
			w.t.Errorf("state %q, %q does not contain %q", s.Message, s.Detail, part)
		}
	}
	if strings.Contains(s.Message+s.Detail+w.log.String(), testSecret) {
		w.t.Errorf("the secret is revealed: %q\n%s", s.Message, &w.log)
	}
}

// said returns all text in a state.
func said(s State) string { return s.Message + ": " + s.Detail }
