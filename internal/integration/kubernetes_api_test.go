//go:build integration

package integration

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// testbedBinary returns a program that one of scripts/build-*.sh has built, and fails if there is none.
func testbedBinary(t *testing.T, name, script string) string {
	t.Helper()
	testbed := os.Getenv("SCHEDULER_TESTBED")
	if testbed == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		testbed = filepath.Join(home, ".cache", "scheduler-testbed")
	}
	path := filepath.Join(testbed, "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no %s, %v: run %s", name, err, script)
	}
	return path
}

// administrators is the group of cluster administrators.
const administrators = "system:masters"

// user returns the certificate of a user.
func (c *control) user(name string, groups ...string) *certtest.Certificate {
	c.t.Helper()
	return c.ca.Issue(c.t, x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// control is a real Kubernetes API server without controllers and kubelets: the test sets its nodes and pods.
type control struct {
	t       *testing.T
	dir     string
	etcd    string
	address string
	flags   []string // in addition to those that every test needs
	ca      *certtest.Certificate
	http    *http.Client
	cmd     *exec.Cmd
	exited  chan struct{}
}

// startEtcd runs an etcd in this process, and returns its address.
func startEtcd(t *testing.T) string {
	t.Helper()
	address, _ := storetest.Etcd(t)
	return "http://" + address
}

// startControl starts an etcd and an API server.
func startControl(t *testing.T) *control {
	t.Helper()
	return startControlWith(t, func(string) []string {
		return []string{"--disable-admission-plugins=ServiceAccount"} // service accounts are not created
	})
}

// startControlWith starts them with flags that may depend on the directory of the API server's files.
func startControlWith(t *testing.T, flags func(dir string) []string) *control {
	t.Helper()
	c := &control{t: t, dir: t.TempDir(), etcd: startEtcd(t), address: proxytest.FreeAddress(t)}
	c.flags = flags(c.dir)
	c.write("sa.key", certtest.Authority(t).KeyPEM())
	c.renew()
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			if log, err := os.ReadFile(filepath.Join(c.dir, "log")); err == nil {
				t.Logf("the end of the API server's log:\n%s", log[max(0, len(log)-4000):])
			}
		}
	})
	c.start()
	return c
}

func (c *control) write(name string, data []byte) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// renew gives the API server a new authority, with new certificates. It takes effect at the next start.
func (c *control) renew() {
	c.t.Helper()
	c.ca = certtest.Authority(c.t)
	server := certtest.Loopback("kube-apiserver")
	server.IPAddresses = append(server.IPAddresses, net.IPv4(10, 0, 0, 1))
	c.write("ca.crt", c.ca.PEM())
	c.ca.Issue(c.t, server).Write(c.t, filepath.Join(c.dir, "server.crt"), filepath.Join(c.dir, "server.key"))
	pair := c.user("test", administrators).TLS()
	c.http = &http.Client{Timeout: eventually.Limit, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: c.ca.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
}

// start starts the API server and waits until it is ready.
func (c *control) start() {
	c.t.Helper()
	_, port, err := net.SplitHostPort(c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	in := func(name string) string { return filepath.Join(c.dir, name) }
	c.cmd = exec.Command(testbedBinary(c.t, "kube-apiserver", "scripts/build-kubernetes.sh"), append([]string{
		"--etcd-servers=" + c.etcd, "--bind-address=127.0.0.1", "--secure-port=" + port, "--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/16",
		"--tls-cert-file=" + in("server.crt"), "--tls-private-key-file=" + in("server.key"), "--client-ca-file=" + in("ca.crt"),
		"--service-account-issuer=https://test", "--service-account-key-file=" + in("sa.key"), "--service-account-signing-key-file=" + in("sa.key"),
		"--authorization-mode=RBAC", "--enable-priority-and-fairness=false",
	}, c.flags...)...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.exited = make(chan struct{})
	go func() {
		_ = c.cmd.Wait() // only its end matters
		close(c.exited)
	}()
	eventually.True(c.t, "the API server is ready", func() bool {
		select {
		case <-c.exited:
			c.t.Fatal("the API server has exited")
		default:
		}
		resp, err := c.http.Get("https://" + c.address + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// kill stops the API server: connections are refused.
func (c *control) kill() {
	if c.cmd == nil {
		return
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Error(err)
	}
	<-c.exited
	c.cmd = nil
}

// signal pauses and resumes the API server: while paused, it accepts connections and never responds.
func (c *control) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// kubeconfig returns a self-contained kubeconfig of an administrator with a certificate.
func (c *control) kubeconfig(user string) api.Secret {
	c.t.Helper()
	return c.kubeconfigIn(user, administrators)
}

// kubeconfigIn returns that of a user in some groups.
func (c *control) kubeconfigIn(user string, groups ...string) api.Secret {
	c.t.Helper()
	certificate := c.user(user, groups...)
	encode := base64.StdEncoding.EncodeToString
	return api.NewSecret(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
		"clusters": [{"name": "k", "cluster": {"server": "https://%s", "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"client-certificate-data": %q, "client-key-data": %q}}]}`,
		c.address, encode(c.ca.PEM()), encode(certificate.PEM()), encode(certificate.KeyPEM())))
}

// do sends a request that must succeed. A body is sent as JSON.
func (c *control) do(method, path string, body any) {
	c.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, "https://"+c.address+path, bytes.NewReader(data))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode > 299 {
		c.t.Fatalf("%s %s: %s\n%s", method, path, resp.Status, answer)
	}
}

type document = map[string]any

// addNode adds a ready node with 8 CPUs and 32 GiB in a zone.
func (c *control) addNode(name, zone string) {
	c.t.Helper()
	amounts := document{"cpu": "8", "memory": "32Gi", "pods": "110"}
	c.do(http.MethodPost, "/api/v1/nodes", document{
		"apiVersion": "v1", "kind": "Node",
		"metadata": document{"name": name, "labels": document{"topology.kubernetes.io/region": "eu-central", "topology.kubernetes.io/zone": zone}},
	})
	c.do(http.MethodPatch, "/api/v1/nodes/"+name+"/status", document{"status": document{"capacity": amounts, "allocatable": amounts}})
	c.condition(name, "Ready", "True")
}

// condition sets a condition of a node.
func (c *control) condition(node, condition, status string) {
	c.t.Helper()
	c.do(http.MethodPatch, "/api/v1/nodes/"+node+"/status", document{
		"status": document{"conditions": []any{document{"type": condition, "status": status}}},
	})
}

// addPod puts a pod on a node.
func (c *control) addPod(name, node, cpu string) {
	c.t.Helper()
	c.do(http.MethodPost, "/api/v1/namespaces/default/pods", document{
		"apiVersion": "v1", "kind": "Pod", "metadata": document{"name": name},
		"spec": document{"nodeName": node, "containers": []any{document{
			"name": "c", "image": "none", "resources": document{"requests": document{"cpu": cpu, "memory": "1Gi"}},
		}}},
	})
}

func (c *control) removePod(name string) {
	c.t.Helper()
	c.do(http.MethodDelete, "/api/v1/namespaces/default/pods/"+name, document{"gracePeriodSeconds": 0})
}

// define adds a custom resource type.
func (c *control) define(plural, kind string) {
	c.t.Helper()
	c.do(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": document{"name": plural + ".example.com"},
		"spec": document{
			"group": "example.com", "scope": "Namespaced", "names": document{"plural": plural, "kind": kind},
			"versions": []any{document{"name": "v1", "served": true, "storage": true, "schema": document{"openAPIV3Schema": document{"type": "object"}}}},
		},
	})
}
