package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// TestKubeconfigsRefused checks that a kubeconfig cannot make the server read files or run programs, even if it was
// stored before it was checked, and that no message repeats a part of it.
func TestKubeconfigsRefused(t *testing.T) {
	whole := kubeconfigOf("eu", "hush-hush").Reveal()
	for _, c := range []struct{ name, old, new, want string }{
		{"not YAML", "contexts:", "contexts: [", "not YAML"},
		{"no context", "current-context: c", "current-context: other", "not complete"},
		{"exec", `token: "hush-hush"`, "exec: {command: hush, apiVersion: client.authentication.k8s.io/v1}", "runs programs"},
		{"auth provider", `token: "hush-hush"`, "auth-provider: {name: hush}", "runs programs"},
		{"token file", `token: "hush-hush"`, "tokenFile: /hush", "names files"},
		{"certificate file", `token: "hush-hush"`, "client-certificate: /hush", "names files"},
		{"CA file", "certificate-authority-data: " + authority, "certificate-authority: /hush", "names a file"},
		{"invalid CA", authority, "aHVzaA==", "certificates"},
		{"invalid base64", authority, "hush!", "base64 data is invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newClient(kube.New(addresspolicy.OnLoopback(), nil), "eu", api.NewSecret(strings.Replace(whole, c.old, c.new, 1)))
			if !errors.Is(err, kube.ErrKubeconfig) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("unexpected error %v", err)
			}
		})
	}
}

// TestCertificates checks that the message says what is wrong with an API server's certificate.
func TestCertificates(t *testing.T) {
	for _, c := range []struct{ name, host, old, new, message string }{
		{"other name", "elsewhere.example", "", "", "certificate is valid for"},
		{"other CA", "eu", "certificate-authority-data: " + authority, "insecure-skip-tls-verify: false", "certificate signed by unknown authority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.server(c.host)
				cluster := on("eu", c.host)
				cluster.Spec.Kubernetes.Kubeconfig = api.NewSecret(strings.Replace(cluster.Spec.Kubernetes.Kubeconfig.Reveal(), c.old, c.new, 1))
				w.put(cluster)
				w.expect("eu", api.StatePending, api.ConditionFalse, api.ReasonUnreachable)
				if text := asJSON(t, w.status("eu").Conditions); !strings.Contains(text, c.message) {
					t.Errorf("unexpected conditions %s", text)
				}
				faketime.Sleep(time.Minute)
				w.steady(10 * time.Minute)
			})
		})
	}
}

// FuzzKubeconfig checks that no text makes the server read files, run programs or repeat the text.
func FuzzKubeconfig(f *testing.F) {
	f.Add(kubeconfigOf("eu", "hush-hush").Reveal())
	f.Add("current-context: c\nusers: [{name: u, user: {exec: {command: x}}}]")
	f.Add(`{"current-context":"c","contexts":[{"name":"c","context":{}}],"clusters":[{"name":"","cluster":{"server":"https://x"}}]}`)
	f.Add("proxy-url: \x00")
	f.Fuzz(func(t *testing.T, text string) {
		config, err := kube.Load(api.NewSecret(text))
		if err == nil {
			if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
				t.Fatalf("a kubeconfig that reads files or runs programs is accepted: %q", text)
			}
			_, err = newClient(kube.New(addresspolicy.OnLoopback(), nil), "eu", api.NewSecret(text))
		}
		if err != nil && !errors.Is(err, kube.ErrKubeconfig) {
			t.Errorf("error %v, want ErrKubeconfig", err)
		}
	})
}
