package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
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
	code := servertest.Run(m)
	if providerBinary.dir != "" {
		_ = os.RemoveAll(providerBinary.dir) // a temporary directory: nothing depends on it
	}
	os.Exit(code)
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
func newFleet(t *testing.T, args ...string) *fleet {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
	t.Parallel()
	endpoint := servertest.Start(t, args...)
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
