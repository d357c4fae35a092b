// Command failover is a fleet that is answered for at night: an etcd cluster of three
// members, three scheduling servers on it and a load balancer before them; with -peers the
// servers' own stores are the cluster. It applies a
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
	"slices"
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
	byThemselves := flag.Bool("peers", false, "let the stores of the servers be the etcd cluster")
	direct := flag.Bool("direct", false, "give Terraform the addresses of the servers in place of a load balancer")
	flag.Parse()
	if flag.Arg(0) == "member" && flag.NArg() == 6 {
		return member(ctx, flag.Arg(1), flag.Arg(2), flag.Arg(3), flag.Arg(4), flag.Arg(5))
	}
	f := &fleet{work: *work, binary: *server, byThemselves: *byThemselves}
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
	what := "Three etcd members, three servers on them"
	if f.byThemselves {
		what = "Three servers whose own stores are the etcd cluster"
	}
	fmt.Printf("%s, and %s.\n", what, before)
	return story{f, t}.tell(ctx, *rounds)
}

// fleet is everything that runs.
type fleet struct {
	work, binary string
	byThemselves bool   // the servers' own stores are the cluster
	address      string // address of the load balancer
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
	f.addresses = map[*process]string{}
	for i, address := range apis {
		s := f.process(fmt.Sprint("server-", i+1), "scheduler-server ready")
		s.command = []string{f.binary, "serve", "--name", s.name, "--listen", address, "--lease", "3s", "--key-file", filepath.Join(f.work, "seal.key")}
		f.servers = append(f.servers, s)
		f.addresses[s] = address
	}
	if f.byThemselves {
		f.members = f.servers
		for _, s := range f.servers {
			s.command = append(s.command, "--cluster-peers", cluster(f.servers, peers), "--data-dir", filepath.Join(f.work, s.name))
		}
	} else {
		for i, client := range clients {
			m := f.process(fmt.Sprint("etcd-", i+1), "ready")
			f.members = append(f.members, m)
			f.addresses[m] = client
			f.servers[i].command = append(f.servers[i].command, "--etcd-endpoints", strings.Join(clients, ","))
		}
		for i, m := range f.members {
			m.command = []string{self, "member", m.name, filepath.Join(f.work, m.name), clients[i], peers[i], cluster(f.members, peers)}
		}
		if err := startAll(ctx, f.members); err != nil {
			return err
		}
	}
	if err := startAll(ctx, f.servers); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.address = listener.Addr().String()
	go (&balancer{servers: apis, ready: map[string]bool{}}).run(ctx, listener)
	return nil
}

// process returns a process that prints a line when it is ready.
func (f *fleet) process(name, ready string) *process {
	return &process{name: name, ready: ready, logFile: filepath.Join(f.work, name+".log")}
}

// cluster formats the members of a cluster and their addresses.
func cluster(members []*process, addresses []string) string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = m.name + "=http://" + addresses[i]
	}
	return strings.Join(list, ",")
}

// startAll starts processes concurrently: none may become ready before the others exist.
func startAll(ctx context.Context, list []*process) error {
	started := make(chan error)
	for _, p := range list {
		go func() { started <- p.start(ctx) }()
	}
	var err error
	for range list {
		err = errors.Join(err, <-started)
	}
	return err
}

// end stops everything, the servers before their store.
func (f *fleet) end() {
	for _, p := range append(slices.Clone(f.servers), f.members...) {
		if p.cmd != nil && p.cmd.ProcessState == nil {
			_ = p.stop(syscall.SIGTERM) // errors no longer matter
		}
	}
}

// freeAddresses returns free addresses outside the kernel's ephemeral range, so that they stay free while a process is
// down.
func freeAddresses(ctx context.Context, n int) ([]string, error) {
	var list []string
	for range 1000 {
		if len(list) == n {
			break
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", 12_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close() // keep all of them until the last one is known
			list = append(list, l.Addr().String())
		}
	}
	if len(list) < n {
		return nil, errors.New("no ports are free")
	}
	return list, nil
}
