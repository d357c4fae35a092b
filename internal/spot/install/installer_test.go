package install

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
)

func TestInstallsAndTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState(reasonInstalling)
		w.start()
		w.wantState(reasonInstalled, "https://scheduler.example.com:8443")
		urls := map[string]string{}
		for _, h := range w.mutatingNow().Webhooks {
			urls[h.Name] = *h.ClientConfig.URL
			if string(h.ClientConfig.CABundle) != "first" {
				t.Errorf("%s has the CA bundle %q", h.Name, h.ClientConfig.CABundle)
			}
		}
		for _, h := range w.validatingNow().Webhooks {
			urls[h.Name] = *h.ClientConfig.URL
			if *h.FailurePolicy != admissionv1.Ignore {
				t.Errorf("%s blocks the cluster while this server is away", h.Name)
			}
		}
		for name, path := range map[string]string{
			"pods.distribution.vacant.io": "/pods", "probe.distribution.vacant.io": "/probe",
			"workloads.distribution.vacant.io": "/workloads", "pod-labels.distribution.vacant.io": "/pod-labels",
		} {
			if urls[name] != testBase+path {
				t.Errorf("%s has the address %q", name, urls[name])
			}
		}
		probes := w.count("create configmaps")
		pass(10 * time.Minute)
		if n := w.count("create configmaps") - probes; n < 9 || n > 11 {
			t.Errorf("%d probes in ten minutes, want one a minute", n)
		}
		if n := w.count("get mutating"); n < 40 || n > 50 {
			t.Errorf("%d reads in ten minutes, want one every 15 seconds", n)
		}
		if w.count("create mutating") != 1 || w.count("create validating") != 1 || w.count("update") != 0 {
			t.Error("writes without a change")
		}
		if n := strings.Count(w.log.String(), "\n"); n != 1 {
			t.Errorf("%d lines in the log, want 1:\n%s", n, &w.log)
		}
	})
}

func TestNamespacesOfTheSystemAreLeftOut(t *testing.T) {
	w := newWorld(t)
	want := []string{"kube-node-lease", "kube-public", "kube-system", "scheduler-system"}
	pods := w.mutating(nil).Webhooks[0]
	if got := pods.NamespaceSelector.MatchExpressions[0]; !slices.Equal(got.Values, want) || got.Operator != metav1.LabelSelectorOpNotIn {
		t.Errorf("unexpected namespace selector for pods: %v", got)
	}
	if *pods.FailurePolicy != admissionv1.Ignore {
		t.Error("no pods can be created while this server is away")
	}
	for _, h := range w.validating(nil).Webhooks {
		if got := h.NamespaceSelector.MatchExpressions[0]; !slices.Equal(got.Values, want) {
			t.Errorf("%s: got %v", h.Name, got)
		}
	}
}

func TestDriftIsRepaired(t *testing.T) {
	cases := map[string]func(*admissionv1.MutatingWebhookConfiguration){
		"other policy":       func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks[0].FailurePolicy = new(admissionv1.Fail) },
		"other address":      func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks[0].ClientConfig.URL = new("https://x/") },
		"other authority":    func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks[0].ClientConfig.CABundle = []byte("x") },
		"no selector":        func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks[0].NamespaceSelector = nil },
		"no condition":       func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks[0].MatchConditions = nil },
		"a webhook less":     func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks = c.Webhooks[1:] },
		"none left":          func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks = nil },
		"a webhook more":     func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks = append(c.Webhooks, c.Webhooks[0]) },
		"our annotation off": func(c *admissionv1.MutatingWebhookConfiguration) { c.Annotations = nil },
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start()
				good := w.mutatingNow()
				bad := good.DeepCopy()
				edit(bad)
				bad.Labels["theirs"] = "kept"
				configurations := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
				if _, err := configurations.Update(t.Context(), bad, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				pass(15 * time.Second)
				now := w.mutatingNow()
				if !reflect.DeepEqual(now.Webhooks, good.Webhooks) || now.Annotations["admissions.enforcer/disabled"] != "true" {
					t.Error("the configuration was not restored")
				}
				if now.Labels["theirs"] != "kept" {
					t.Error("a label of somebody else was lost")
				}
				if !strings.Contains(w.log.String(), "restoring it") {
					t.Errorf("the log does not mention the repair:\n%s", &w.log)
				}
				w.wantState(reasonInstalled)
			})
		})
	}
	t.Run("deleted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			configurations := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
			if err := configurations.Delete(t.Context(), configurationName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			pass(15 * time.Second)
			if len(w.validatingNow().Webhooks) != 2 {
				t.Error("the configuration was not restored")
			}
		})
	})
}

// TestConflictingOwner checks that a cluster that is registered twice is reported, and works again when the other
// registration is removed.
func TestConflictingOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		configurations := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
		for range maxRepairs {
			w.wantState(reasonInstalled)
			theirs := w.mutatingNow()
			theirs.Webhooks[0].ClientConfig.URL = new("https://x/")
			if _, err := configurations.Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			pass(15 * time.Second)
		}
		w.wantState(reasonContested)
		said := strings.Count(w.log.String(), "put back")
		for range 40 {
			theirs := w.mutatingNow()
			theirs.Webhooks[0].ClientConfig.URL = new("https://x/")
			if _, err := configurations.Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			pass(15 * time.Second)
		}
		w.wantState(reasonContested)
		if now := strings.Count(w.log.String(), "put back"); now != said {
			t.Errorf("the log mentions the repair %d times more", now-said)
		}
		pass(2*mostContested + time.Minute)
		w.wantState(reasonInstalled)
	})
}

// TestRemovalLeavesThoseOfOthers: a cluster that is registered under another name by now
// keeps what that has installed.
func TestRemovalLeavesThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pass(t.Context(), w.bundle)
		configurations := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
		theirs := w.mutatingNow()
		for n := range theirs.Webhooks {
			theirs.Webhooks[n].ClientConfig.URL = new(strings.Replace(*theirs.Webhooks[n].ClientConfig.URL, "/clusters/", "/clusters/another-", 1))
		}
		if _, err := configurations.Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := configurations.Get(t.Context(), configurationName, metav1.GetOptions{}); err != nil {
			t.Errorf("configuration of the other server: %v", err)
		}
		if _, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), configurationName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("own configuration: %v", err)
		}
	})
}

func TestForeignLabelsDoNotTriggerUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		theirs := w.mutatingNow()
		theirs.Labels["team"], theirs.Annotations["note"] = "a", "b"
		if _, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		updates := w.count("update")
		pass(time.Minute)
		if w.count("update") != updates {
			t.Error("a label of somebody else caused a write")
		}
	})
}

// Older clusters drop fields, and some providers add selectors. Writing again and again would not help.
func TestMutatedWritesAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.alter = func(c *admissionv1.MutatingWebhookConfiguration) {
			for i := range c.Webhooks {
				c.Webhooks[i].MatchConditions = nil
			}
		}
		w.start()
		pass(10 * time.Minute)
		w.wantState(reasonInstalled)
		if n := w.count("create mutating") + w.count("update mutating"); n != 1 {
			t.Errorf("%d writes, want 1", n)
		}
	})
}

func TestNewBundleIsInstalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.do(func() {
			w.bundle = []byte("first and second")
			close(w.renewed)
			w.renewed = make(chan struct{})
		})
		synctest.Wait()
		for _, h := range w.mutatingNow().Webhooks {
			if string(h.ClientConfig.CABundle) != "first and second" {
				t.Errorf("%s has the CA bundle %q", h.Name, h.ClientConfig.CABundle)
			}
		}
		if strings.Contains(w.log.String(), "put back") {
			t.Errorf("the log blames others for an own change:\n%s", &w.log)
		}
	})
}

func TestNothingIsInstalledWithoutAnAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.bundle = nil
		w.start()
		w.wantState(reasonInstalling, "authority")
		if w.count("create") > 0 {
			t.Error("a configuration without a CA bundle was created")
		}
	})
}

// denied returns the authorizer's error.
func denied(verb, group, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "x",
		fmt.Errorf("User %q cannot %s resource %q in API group %q at the cluster scope", "u", verb, resource, group))
}

func on(want string, err error) func(verb, resource string) error {
	return func(verb, resource string) error {
		if strings.HasPrefix(verb+" "+resource, want) {
			return err
		}
		return nil
	}
}

func internal(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError, Message: message}}
}

func TestEveryFailureIsAStateThatPasses(t *testing.T) {
	const registration = "admissionregistration.k8s.io"
	call := func(cause string) error {
		return internal(`Internal error occurred: failed calling webhook "probe.distribution.vacant.io": failed to call webhook: Post "` + testBase + `/probe?timeout=3s": ` + cause)
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	cases := []struct {
		name   string
		fail   func(verb, resource string) error
		answer func(string) string
		reason string
		says   []string
	}{
		{"not allowed to read", on("get mutating", denied("get", registration, "mutatingwebhookconfigurations")), nil,
			reasonForbidden, []string{`verb "get"`, "mutatingwebhookconfigurations", registration}},
		{"not allowed to create", on("create validating", denied("create", registration, "validatingwebhookconfigurations")), nil,
			reasonForbidden, []string{`verb "create"`, "validatingwebhookconfigurations"}},
		{"not allowed to do anything", func(verb, resource string) error { return denied(verb, registration, resource) }, nil,
			reasonForbidden, []string{"mutatingwebhookconfigurations", "; ", "validatingwebhookconfigurations"}},
		{"not allowed to create the probe", on("create configmaps", denied("create", "", "configmaps")), nil,
			reasonForbidden, []string{`verb "create"`, "configmaps in namespace default"}},
		{"unknown credentials", on("get", apierrors.NewUnauthorized("no")), nil, reasonUnauthorized, []string{"401"}},
		{"a policy rejects the configuration", on("create mutating", apierrors.NewForbidden(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "x", errors.New(`admission webhook "guard" denied the request: no webhooks`))), nil,
			reasonRejected, []string{"no webhooks"}},
		{"a policy reveals the address", on("create mutating", apierrors.NewBadRequest("url "+testBase+"/pods is bad")), nil,
			reasonRejected, []string{"is bad"}},
		{"a quota rejects the probe", on("create configmaps", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, probeName, errors.New("exceeded quota: small"))), nil,
			reasonProbeRejected, []string{"exceeded quota: small"}},
		{"probe exists", on("create configmaps", apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, probeName)), nil,
			reasonProbeRejected, []string{"delete it"}},
		{"webhook refuses connections", on("create configmaps", call("dial tcp 10.0.0.9:8443: connect: connection refused")), nil,
			reasonNotReached, []string{"https://scheduler.example.com:8443: dial tcp 10.0.0.9:8443: connect: connection refused"}},
		{"webhook is not trusted", on("create configmaps", call("tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is after 2025-01-01T00:00:00Z")), nil,
			reasonNotReached, []string{"x509", "the current time is after 2025"}},
		{"connection reset", on("create configmaps", call("read tcp 10.0.0.2:40312->10.0.0.9:8443: read: connection reset by peer")), nil,
			reasonNotReached, []string{"read tcp 10.0.0.9:8443: read"}},
		{"endless message", on("create configmaps", call(strings.Repeat("é", 5000))), nil, reasonNotReached, []string{"éé"}},
		{"another server answers", nil, func(string) string { return "other" }, reasonNotReached, []string{"another server"}},
		{"not called", nil, func(string) string { return "" }, reasonNotReached, []string{"did not call the webhook at https://scheduler.example.com:8443"}},
		{"API server unreachable", on("get", refused), nil, reasonUnreachable, []string{"refused"}},
		{"API server overloaded", on("create configmaps", apierrors.NewTooManyRequests("later", 1)), nil, reasonUnreachable, []string{"429"}},
		{"API server fails", on("get", internal("etcd is away")), nil, reasonUnreachable, []string{"500"}},
		{"concurrent write", on("create mutating", apierrors.NewAlreadyExists(schema.GroupResource{Resource: "x"}, "x")), nil, reasonInstalling, []string{"same time"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fail, w.answer = c.fail, c.answer
				w.start()
				pass(time.Hour)
				w.wantState(c.reason, c.says...)
				if n := len([]rune(w.State().Message)); n > 700 {
					t.Errorf("the message has %d characters", n)
				}
				if n := strings.Count(w.log.String(), "\n"); n > 2 {
					t.Errorf("%d log lines for one change:\n%s", n, &w.log)
				}
				w.do(func() { w.fail, w.answer = nil, nil })
				pass(31 * time.Second)
				w.wantState(reasonInstalled)
			})
		})
	}
}

func TestTriesSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fail = on("get", internal("no"))
		w.start()
		pass(3 * time.Minute)
		var waits []time.Duration
		var last time.Time
		for _, r := range w.requests {
			if r.resource != "mutatingwebhookconfigurations" {
				continue
			}
			if !last.IsZero() {
				waits = append(waits, r.at.Sub(last))
			}
			last = r.at
		}
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
		if len(waits) < len(want) || !slices.Equal(waits[:len(want)], want) {
			t.Errorf("the waits are %v, want %v", waits, want)
		}
	})
}

func TestOneFailureSaysLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		changed := w.Changed()
		remaining := 1
		w.do(func() {
			w.fail = func(verb, resource string) error {
				if verb == "get" && resource == "mutatingwebhookconfigurations" && remaining > 0 {
					remaining--
					return internal("no")
				}
				return nil
			}
		})
		pass(5 * time.Minute)
		select {
		case <-changed:
			t.Errorf("the state changed because of one failure: %+v", w.State())
		default:
		}
		w.do(func() { remaining = 2 })
		<-changed
		synctest.Wait() // logged after this
		w.wantState(reasonUnreachable)
		changed = w.Changed()
		<-changed
		synctest.Wait()
		w.wantState(reasonInstalled)
	})
}

func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pass(t.Context(), w.bundle)
		w.wantState(reasonInstalled)
		w.do(func() {
			w.fail = on("delete mutating", denied("delete", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"))
		})
		if err := w.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), `verb "delete"`) {
			t.Errorf("error %v does not name the missing permission", err)
		}
		w.do(func() { w.fail = nil })
		for range 2 { // the second time, there is nothing to remove
			if err := w.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.wantState(reasonRemoved)
		list, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) > 0 {
			t.Errorf("%d configurations left, want none; %v", len(list.Items), err)
		}
		w.pass(t.Context(), w.bundle)
		w.wantState(reasonInstalled)
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	bundle := func() ([]byte, <-chan struct{}) { return nil, nil }
	for _, address := range []string{
		"", "http://a/clusters/c/" + testSecret, "https:///clusters/c/" + testSecret, "https://a/clusters/c/" + testSecret + "/",
		"https://u:p@a/clusters/c/" + testSecret, "https://a/clusters/c/" + testSecret + "?x=1", "https://a", "https://a:b/" + testSecret,
	} {
		_, err := New(Options{Client: fake.NewClientset(), BaseURL: address, Bundle: bundle})
		if err == nil {
			t.Errorf("New() accepts %s", address)
		} else if strings.Contains(err.Error(), testSecret) {
			t.Errorf("the error contains the secret: %v", err)
		}
	}
	if _, err := New(Options{BaseURL: testBase}); err == nil {
		t.Error("New() without a client succeeded")
	}
}
