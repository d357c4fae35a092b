package provider_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/provider"
)

// factories create the provider under test.
var factories = map[string]func() (tfprotov6.ProviderServer, error){
	"scheduler": func() (tfprotov6.ProviderServer, error) { return provider.NewServer("test")(), nil },
}

// namespaceVariable is what the library for tests reads the namespace of the
// provider's address from.
const namespaceVariable = "TF_ACC_PROVIDER_NAMESPACE"

func TestMain(m *testing.M) {
	// The examples use scheduler/scheduler.
	if os.Getenv(namespaceVariable) == "" {
		if err := os.Setenv(namespaceVariable, "scheduler"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	for _, dir := range []string{serverBinary.dir, providerBinary.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir) // a temporary directory: nothing depends on it
		}
	}
	os.Exit(code)
}

// serverBinary is the scheduling server, built once for all tests.
var serverBinary struct {
	once      sync.Once
	dir, path string
	err       error
}

// builtServer returns the path of the server's binary. SCHEDULER_TEST_SERVER
// names one that is built already.
func builtServer(t *testing.T) string {
	t.Helper()
	b := &serverBinary
	b.once.Do(func() {
		if b.path = os.Getenv("SCHEDULER_TEST_SERVER"); b.path != "" {
			_, b.err = os.Stat(b.path) // go test then runs the tests again when it is another one
			return
		}
		//nolint:usetesting // it outlives the test that is first
		if b.dir, b.err = os.MkdirTemp("", "scheduler-acctest-"); b.err != nil {
			return
		}
		b.path = filepath.Join(b.dir, "scheduler-server")
		build := exec.Command("go", "build", "-o", b.path, "../server")
		if out, err := build.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("go build ../server: %w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

var readyLine = regexp.MustCompile(`https?://[^\s"]+`)

// startServer starts a scheduling server with an empty store for one test and
// returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	server := exec.Command(builtServer(t), "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0")
	server.Env = append(os.Environ(), "SCHEDULER_STORE_TIMEOUT="+eventually.Limit.String(), "SCHEDULER_STORE_PATIENCE="+eventually.Limit.String())
	var log strings.Builder
	server.Stderr = &log
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	read := make(chan struct{})
	go func() {
		defer close(read)
		scanner := bufio.NewScanner(stdout)
		if scanner.Scan() {
			lines <- scanner.Text()
		}
		close(lines)
		for scanner.Scan() { //nolint:revive // drains what nobody reads
		}
	}()
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-read
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended with %v; its log:\n%s", err, log.String())
		}
	})
	select {
	case line := <-lines:
		if endpoint := readyLine.FindString(line); endpoint != "" {
			return endpoint
		}
		t.Fatalf("the server's first line %q has no address; its log:\n%s", line, log.String())
	case <-time.After(eventually.Limit):
		t.Fatalf("the server was not ready within %s; its log:\n%s", eventually.Limit, log.String())
	}
	return ""
}

// fleet is a running server as a test sees it: what Terraform is told about it,
// and a client that acts behind Terraform's back.
type fleet struct {
	t        *testing.T
	endpoint string
	client   *client.Client
}

// newFleet starts a server for one test. The test runs beside others from then on:
// most of its time it waits for Terraform.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
	t.Parallel()
	endpoint := startServer(t)
	c, err := client.New(client.Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &fleet{t: t, endpoint: endpoint, client: c}
}

// config returns a Terraform configuration for this server.
func (f *fleet) config(blocks ...string) string {
	return fmt.Sprintf("provider \"scheduler\" {\n  endpoint = %q\n}\n", f.endpoint) + strings.Join(blocks, "\n")
}

func (f *fleet) ctx() context.Context { return f.t.Context() }

// put writes an object outside of Terraform, and repeats the write when the server asks for it: on a busy machine its
// store may be slow.
func (f *fleet) put(object api.Object) {
	f.t.Helper()
	object.SetDefaults()
	var err error
	eventually.True(f.t, "a write is answered", func() bool {
		_, err = f.client.Put(f.ctx(), object, client.PutOptions{})
		return client.StatusOf(err) != http.StatusServiceUnavailable
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// delete deletes an object outside of Terraform.
func (f *fleet) delete(key api.Key) {
	f.t.Helper()
	if err := f.client.Delete(f.ctx(), key); err != nil {
		f.t.Fatal(err)
	}
}

// edit changes an object outside of Terraform.
func edit[T api.Object](f *fleet, key api.Key, change func(T)) {
	f.t.Helper()
	object, err := f.client.Get(f.ctx(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	typed, ok := object.(T)
	if !ok {
		f.t.Fatalf("%s is a %T", key, object)
	}
	change(typed)
	f.put(typed)
}

// cluster adds an online cluster with labels, written as key, value, ….
func (f *fleet) cluster(name string, labels ...string) {
	f.t.Helper()
	cluster := &api.Cluster{Metadata: api.Metadata{Name: name, Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		cluster.Metadata.Labels[labels[i]] = labels[i+1]
	}
	f.put(cluster)
}

// gone checks that an object was destroyed.
func (f *fleet) gone(keys ...api.Key) error {
	for _, key := range keys {
		if _, err := f.client.Get(context.WithoutCancel(f.ctx()), key); !client.IsNotFound(err) {
			return fmt.Errorf("%s was not destroyed: %w", key, err)
		}
	}
	return nil
}
