package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// terraform applies a configuration repeatedly.
type terraform struct {
	directory string
	endpoints []string
}

// command returns a Terraform command on the fleet.
func (t *terraform) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "terraform", append([]string{"-chdir=" + t.directory}, args...)...) //nolint:gosec // the arguments are the demo's own
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), "SCHEDULER_ENDPOINTS="+strings.Join(t.endpoints, ","))
	return cmd
}

// apply applies a number of applications. It calls meanwhile once the first object has been written.
func (t *terraform) apply(ctx context.Context, applications int, meanwhile func() error) error {
	cmd := t.command(ctx, "apply", "-auto-approve", "-parallelism=2", fmt.Sprintf("-var=applications=%d", applications))
	said := &watched{words: []string{": Creating...", ": Modifying..."}, seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case <-said.seen:
		err = meanwhile()
	case e := <-ended:
		ended <- e
	}
	if failed := <-ended; failed != nil {
		return errors.Join(err, fmt.Errorf("terraform apply: %w\n%s", failed, said.text.String()))
	}
	return err
}

// decisions returns where each application runs, according to Terraform.
func (t *terraform) decisions(ctx context.Context) (map[string][]string, error) {
	text, err := t.command(ctx, "output", "-json", "decisions").Output()
	if err != nil {
		return nil, fmt.Errorf("terraform output: %w", err)
	}
	var decisions map[string][]string
	return decisions, json.Unmarshal(text, &decisions)
}

// watched keeps the output of a program, and calls a function when it first contains something.
type watched struct {
	words []string
	seen  chan struct{}
	text  bytes.Buffer
	told  bool
}

// Write implements io.Writer. Only one goroutine calls it.
func (w *watched) Write(p []byte) (int, error) {
	w.text.Write(p)
	for _, words := range w.words {
		if !w.told && strings.Contains(w.text.String(), words) {
			w.told = true
			close(w.seen)
		}
	}
	return len(p), nil
}

// fault is a fault that is injected while Terraform applies.
type fault struct {
	what   string
	victim func(context.Context, *fleet) (*process, error)
	signal syscall.Signal
}

var faults = []fault{
	{"The server that leads is killed", leadingServer, syscall.SIGKILL},
	{"A server that follows is killed", followingServer, syscall.SIGKILL},
	{"The etcd member that leads is killed", leadingMember, syscall.SIGKILL},
	{"The server that leads is told to stop", leadingServer, syscall.SIGTERM},
	{"An etcd member that follows is killed", followingMember, syscall.SIGKILL},
}

// story is what the demo shows.
type story struct {
	fleet     *fleet
	terraform *terraform
}

// tell applies in rounds, with a fault in each except the first.
func (s story) tell(ctx context.Context, rounds int) error {
	before := map[string][]string{}
	for round := range rounds {
		var victim *process
		happen := func() error { return nil }
		what := "Nothing happens"
		if round > 0 {
			f := faults[(round-1)%len(faults)]
			what = f.what
			happen = func() (err error) {
				if victim, err = f.victim(ctx, s.fleet); err != nil {
					return err
				}
				return victim.stop(f.signal)
			}
		}
		began := time.Now()
		if err := s.terraform.apply(ctx, 3+round, happen); err != nil {
			return fmt.Errorf("round %d (%s): %w", round+1, what, err)
		}
		took := time.Since(began).Round(100 * time.Millisecond)
		after, err := s.terraform.decisions(ctx)
		if err != nil {
			return err
		}
		if err := stays(before, after); err != nil {
			return fmt.Errorf("round %d (%s): %w", round+1, what, err)
		}
		before = after
		name := ""
		if victim != nil {
			name = " (" + victim.name + ")"
			if err := victim.start(ctx); err != nil {
				return err
			}
		}
		fmt.Printf("%2d. %-42s applied in %5s: %d decisions, none moved.\n", round+1, what+name+".", took, len(after))
	}
	// Everything exists, and only once.
	code := s.terraform.command(ctx, "plan", "-detailed-exitcode", fmt.Sprintf("-var=applications=%d", 2+rounds))
	if said, err := code.CombinedOutput(); err != nil {
		return fmt.Errorf("a plan after the last apply: %w\n%s", err, said)
	}
	fmt.Println("terraform plan: no changes.")
	return nil
}

// stays returns an error if a decision has changed.
func stays(before, after map[string][]string) error {
	for name, clusters := range before {
		if !reflect.DeepEqual(after[name], clusters) {
			return fmt.Errorf("%s moved from %v to %v", name, clusters, after[name])
		}
	}
	for name, clusters := range after {
		if len(clusters) != 1 {
			return fmt.Errorf("%s is on %v", name, clusters)
		}
	}
	return nil
}

func leadingServer(ctx context.Context, f *fleet) (*process, error) { return f.server(ctx, true) }

func followingServer(ctx context.Context, f *fleet) (*process, error) { return f.server(ctx, false) }

// server returns a server that is, or is not, the leader.
func (f *fleet) server(ctx context.Context, leads bool) (*process, error) {
	for ctx.Err() == nil {
		for _, s := range f.servers {
			c, err := client.New(client.Options{Endpoint: "http://" + f.addresses[s]})
			if err != nil {
				return nil, err
			}
			if info, err := c.Server(ctx); err == nil && info.Leader == leads {
				return s, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, ctx.Err()
}

func leadingMember(ctx context.Context, f *fleet) (*process, error) { return f.member(ctx, true) }

func followingMember(ctx context.Context, f *fleet) (*process, error) { return f.member(ctx, false) }

// member returns an etcd member that is, or is not, the leader.
func (f *fleet) member(ctx context.Context, leads bool) (*process, error) {
	for ctx.Err() == nil {
		for _, m := range f.members {
			if is, err := f.memberLeads(ctx, m); err == nil && is == leads {
				return m, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, ctx.Err()
}

func (f *fleet) memberLeads(ctx context.Context, member *process) (bool, error) {
	address := f.addresses[member]
	if f.byThemselves {
		c, err := client.New(client.Options{Endpoint: "http://" + address})
		if err != nil {
			return false, err
		}
		info, err := c.Server(ctx)
		return err == nil && slices.ContainsFunc(info.Store.Members, func(m api.StoreMember) bool { return m.Leader && m.Name == member.name }), err
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: time.Second})
	if err != nil {
		return false, err
	}
	defer c.Close()
	bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, err := c.Status(bounded, address)
	return err == nil && status.Leader == status.Header.MemberId, err
}
