//go:build faults

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// member is an etcd in its own process, at fixed addresses.
type member struct {
	t                     testing.TB
	name, dir             string
	client, peer, cluster string
	cmd                   *exec.Cmd
}

// etcdMain runs the process of a member: "<name> <dir> <client> <peer> <cluster>".
func etcdMain(text string) int {
	parts := strings.Split(text, " ")
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = parts[0], parts[1], parts[4]
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.TickMs, cfg.ElectionMs = 50, 500
	address := func(text string) []url.URL { return []url.URL{{Scheme: "http", Host: text}} }
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = address(parts[2]), address(parts[2])
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = address(parts[3]), address(parts[3])
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-etcd.Server.ReadyNotify()
	fmt.Println("ready")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	etcd.Close()
	return 0
}

// startEtcd starts an etcd cluster with several members.
func startEtcd(t testing.TB, members int) []*member {
	t.Helper()
	var list []*member
	var initial []string
	for n := range members {
		m := &member{t: t, name: fmt.Sprintf("m%d", n), dir: filepath.Join(t.TempDir(), "etcd"), client: proxytest.FreeAddress(t), peer: proxytest.FreeAddress(t)}
		initial = append(initial, m.name+"=http://"+m.peer)
		list = append(list, m)
	}
	ready := make(chan error, members)
	for _, m := range list {
		m.cluster = strings.Join(initial, ",")
		go func() { ready <- m.start() }()
	}
	for range list {
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, m := range list {
			m.kill()
		}
	})
	return list
}

// start starts a member and waits until it is ready.
func (m *member) start() error {
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), etcdVariable+"="+strings.Join([]string{m.name, m.dir, m.client, m.peer, m.cluster}, " "))
	m.cmd.Stderr = os.Stderr
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return fmt.Errorf("etcd %s did not become ready: %q, %w", m.name, line, err)
	}
	return nil
}

func (m *member) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

func (m *member) kill() {
	if m.cmd != nil && m.cmd.ProcessState == nil {
		_ = m.cmd.Process.Kill() // it may have ended on its own
		_ = m.cmd.Wait()
	}
}

// connect returns a client of one etcd that bypasses everything between it and the server.
func (m *member) connect() *clientv3.Client {
	m.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.client}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
			m.t.Error(err)
		}
	})
	return c
}

// external returns the arguments of a server that uses an etcd at some addresses.
func external(t testing.TB, addresses []string, args ...string) []string {
	return append([]string{"--etcd-endpoints", strings.Join(addresses, ","), "--key-file", filepath.Join(t.TempDir(), "seal.key")}, args...)
}

func clientAddresses(members []*member) []string {
	var list []string
	for _, m := range members {
		list = append(list, m.client)
	}
	return list
}
