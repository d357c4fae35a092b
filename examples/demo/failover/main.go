// Command failover is a fleet that is answered for at night: an etcd cluster of three
// members, three scheduling servers on it and a load balancer before them. It applies a
// Terraform configuration in a loop while it kills them one after the other, and ends
// with an error when an apply fails or a decision moves without a cause.
//
//	failover -server bin/scheduler-server -config examples/demo/failover/fleet -work /tmp/x -rounds 8
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(ctx context.Context) error {
	server := flag.String("server", "bin/scheduler-server", "binary of the server")
	config := flag.String("config", "", "directory of the Terraform configuration")
	work := flag.String("work", "", "directory for everything that is written")
	rounds := flag.Int("rounds", 8, "number of applies")
	direct := flag.Bool("direct", false, "give Terraform the addresses of the servers in place of a load balancer")
	flag.Parse()
	if flag.Arg(0) == "member" && flag.NArg() == 6 {
		return member(ctx, flag.Arg(1), flag.Arg(2), flag.Arg(3), flag.Arg(4), flag.Arg(5))
	}
	f := &fleet{work: *work, binary: *server}
	defer f.end()
	if err := f.start(ctx); err != nil {
		return err
	}
	t := &terraform{directory: *config, endpoints: []string{"http://" + f.address}}
	before := "a load balancer at " + t.endpoints[0]
	if *direct {
		t.endpoints = nil
		for _, server := range f.servers {
			t.endpoints = append(t.endpoints, "http://"+f.addresses[server])
		}
		before = "a provider that knows all of them"
	}
	fmt.Printf("Three etcd members, three servers on them, and %s.\n", before)
	return story{f, t}.tell(ctx, *rounds)
}

// fleet is everything that runs.
type fleet struct {
	work, binary string
	address      string // of the load balancer
	members      []*process
	servers      []*process
	addresses    map[*process]string
}

// start starts the members of etcd, the servers and the load balancer.
func (f *fleet) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ports, err := freeAddresses(ctx, 9)
	if err != nil {
		return err
	}
	clients, peers, apis := ports[:3], ports[3:6], ports[6:]
	var cluster []string
	for i, peer := range peers {
		cluster = append(cluster, fmt.Sprintf("etcd-%d=http://%s", i+1, peer))
	}
	f.addresses = map[*process]string{}
	started := make(chan error)
	for i := range clients {
		m := &process{name: fmt.Sprint("etcd-", i+1), ready: "ready"}
		m.logFile = filepath.Join(f.work, m.name+".log")
		m.command = []string{self, "member", m.name, filepath.Join(f.work, m.name), clients[i], peers[i], strings.Join(cluster, ",")}
		f.members = append(f.members, m)
		f.addresses[m] = clients[i]
		go func() { started <- m.start(ctx) }()
	}
	for range f.members {
		err = errors.Join(err, <-started)
	}
	if err != nil {
		return err
	}
	for i, address := range apis {
		s := &process{name: fmt.Sprint("server-", i+1), ready: "scheduler-server ready"}
		s.logFile = filepath.Join(f.work, s.name+".log")
		s.command = []string{
			f.binary, "serve", "--name", s.name, "--listen", address, "--lease", "3s",
			"--etcd-endpoints", strings.Join(clients, ","), "--key-file", filepath.Join(f.work, "seal.key"),
		}
		f.servers = append(f.servers, s)
		f.addresses[s] = address
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.address = listener.Addr().String()
	go (&balancer{servers: apis, ready: map[string]bool{}}).run(ctx, listener)
	return nil
}

// end stops everything, the servers before their store.
func (f *fleet) end() {
	for _, p := range append(f.servers, f.members...) {
		if p.cmd != nil && p.cmd.ProcessState == nil {
			_ = p.stop(syscall.SIGTERM) // whatever it says, the demo is over
		}
	}
}

// freeAddresses are addresses on which nothing listens, below those that the kernel
// gives to whoever asks for none: they stay free while a process is away.
func freeAddresses(ctx context.Context, n int) ([]string, error) {
	var list []string
	for range 1000 {
		if len(list) == n {
			break
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", 12_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close() // all of them are taken until all are known
			list = append(list, l.Addr().String())
		}
	}
	if len(list) < n {
		return nil, errors.New("no ports are free")
	}
	return list, nil
}
