package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

func TestMain(m *testing.M) {
	if orders := os.Getenv(agentsVariable); orders != "" {
		os.Exit(runAgents(orders))
	}
	servertest.ForgetSettings()
	storetest.SmallLogs()
	storetest.VerifyMain(m)
}

// runningServer is a complete server in this process.
type runningServer struct {
	t      testing.TB
	url    string
	client *client.Client
	logs   *logtest.Buffer
	stop   func() error

	historyDir string // if several servers share a store
}

// testConfig is the configuration of serve on a data directory.
func testConfig(dataDir string) config {
	var c config
	c.define(pflag.NewFlagSet("serve", pflag.ContinueOnError))
	c.DataDir, c.Listen, c.LogLevel = dataDir, "127.0.0.1:0", "debug"
	c.DrainTime = 5 * time.Second
	c.StoreTimeout, c.StorePatience = storetest.Patience, storetest.Patience
	return c
}

// start runs a server until the test ends or stop is called.
func start(t testing.TB, c config, options ...func(*client.Options)) *runningServer {
	t.Helper()
	s := &runningServer{t: t, logs: &logtest.Buffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	stdout, toStdout := io.Pipe()
	ended := make(chan error, 1)
	logger, _, err := newLogger(c, s.logs)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		err := run(ctx, c, logger, toStdout)
		toStdout.Close()
		ended <- err
	}()
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.logs)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not become ready: %v", s.stop())
	}
	go func() {
		if rest, _ := io.ReadAll(stdout); len(rest) > 0 {
			t.Errorf("more than one line on standard output: %q", rest)
		}
	}()
	var found bool
	if s.url, found = strings.CutPrefix(strings.TrimSpace(line), "scheduler-server ready at "); !found {
		t.Fatalf("the ready line is %q", line)
	}
	clientOptions := client.Options{Endpoint: s.url, MaxRetries: -1, RequestTimeout: eventually.Limit}
	for _, option := range options {
		option(&clientOptions)
	}
	if s.client, err = client.New(clientOptions); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// put writes an object, and repeats the write when the server asks for it: on a busy machine its store may be slow.
func put[T api.Object](s *runningServer, object T) T {
	s.t.Helper()
	object.SetDefaults()
	var stored api.Object
	err := s.repeated(func() (err error) {
		stored, err = s.client.Put(context.Background(), object, client.PutOptions{})
		return err
	})
	if err != nil {
		s.t.Fatalf("put %s: %v", api.KeyOf(object), err)
	}
	return stored.(T)
}

// repeated makes a call again while the server asks for it.
func (s *runningServer) repeated(call func() error) (err error) {
	s.t.Helper()
	eventually.True(s.t, "a call is answered", func() bool {
		err = call()
		return client.StatusOf(err) != http.StatusServiceUnavailable
	})
	return err
}

func get[T api.Object](s *runningServer, key api.Key) T {
	s.t.Helper()
	var object api.Object
	err := s.repeated(func() (err error) {
		object, err = s.client.Get(context.Background(), key)
		return err
	})
	if err != nil {
		s.t.Fatalf("get %s: %v", key, err)
	}
	return object.(T)
}

func (s *runningServer) status(method, path, token string) int {
	s.t.Helper()
	status, _ := s.request(method, path, token, "")
	return status
}

// versions returns the resource versions of all objects.
func (s *runningServer) versions() map[api.Key]string {
	s.t.Helper()
	out := map[api.Key]string{}
	for _, object := range s.objects() {
		out[api.KeyOf(object)] = object.Meta().ResourceVersion
	}
	return out
}

func (s *runningServer) objects() []api.Object {
	s.t.Helper()
	var out []api.Object
	for _, info := range api.Kinds {
		for object, err := range s.client.List(context.Background(), info.Kind, client.ListOptions{}) {
			if err != nil {
				s.t.Fatal(err)
			}
			out = append(out, object)
		}
	}
	return out
}
