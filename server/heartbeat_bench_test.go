package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// beatEvery is the time between two heartbeats of 10,000 agents that send one every 15 seconds. Concurrent heartbeats
// are cheaper than single ones, so benchmarks must keep this rate.
const beatEvery = 15 * time.Second / 10_000

// BenchmarkHeartbeats measures a heartbeat that reports no change. The agents run in another process, so that only the
// servers, all in this process, are measured.
func BenchmarkHeartbeats(b *testing.B) {
	amounts := `{"capacity":{"cpu":"64","memory":"256Gi"},"allocatable":{"cpu":"62","memory":"250Gi"},"allocated":{"cpu":"20","memory":"100Gi"}}`
	alone := func(b *testing.B) (_, _ *runningServer) { s := benchmarkServer(b, 0); return s, s }
	another := func(b *testing.B) (_, _ *runningServer) { list, _ := several(b, 2); return list[0], list[1] }
	for _, c := range []struct {
		name    string
		servers func(*testing.B) (leader, told *runningServer)
		body    string
	}{{"alive", alone, ""}, {"amounts", alone, amounts}, {"through-another-server", another, ""}} {
		b.Run(c.name, func(b *testing.B) {
			const clusters, agents = 256, 64
			leader, s := c.servers(b)
			for i := range clusters {
				put(leader, &api.Cluster{Metadata: api.Metadata{Name: fmt.Sprint("c", i)}})
			}
			beats := orders{URL: s.url, Agents: agents, Clusters: clusters, Body: c.body}
			beats.carryOut(b, 2*clusters, time.Microsecond)
			cpu := cputime.Used(b)
			b.ReportAllocs()
			b.ResetTimer()
			theirs := beats.carryOut(b, b.N, beatEvery)
			b.StopTimer()
			perBeat := (cputime.Used(b) - cpu).Seconds() / float64(b.N)
			b.ReportMetric(perBeat*1e6, "cpu-µs/op")
			b.ReportMetric(perBeat/beatEvery.Seconds(), "cores/10k-agents")
			b.ReportMetric(theirs.Seconds()/float64(b.N)*1e6, "agent-cpu-µs/op")
		})
	}
}

// agentsVariable has this program send heartbeats in place of testing anything.
const agentsVariable = "SCHEDULER_TEST_AGENTS"

// orders say what the agents send.
type orders struct {
	URL              string
	Agents, Clusters int
	Body             string
	N                int
	Every            time.Duration
}

// carryOut sends n heartbeats from a separate process, one at each interval, and returns its CPU time.
func (o orders) carryOut(b *testing.B, n int, every time.Duration) time.Duration {
	b.Helper()
	o.N, o.Every = n, every
	text, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	process := exec.CommandContext(b.Context(), os.Args[0])
	process.Env = append(os.Environ(), agentsVariable+"="+string(text))
	process.Stderr = os.Stderr
	if err := process.Run(); err != nil {
		b.Fatal(err)
	}
	return process.ProcessState.UserTime() + process.ProcessState.SystemTime()
}

// runAgents sends heartbeats over persistent connections, and returns the process's exit code.
func runAgents(text string) int {
	var o orders
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.send()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o orders) send() error {
	turns := make(chan int)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var all sync.WaitGroup
	for range o.Agents {
		all.Go(func() {
			if err := o.agent(ctx, turns); err != nil {
				cancel(err)
			}
		})
	}
	pace := time.NewTicker(o.Every)
	defer pace.Stop()
	for i := 0; i < o.N && ctx.Err() == nil; i++ {
		<-pace.C
		select {
		case turns <- i:
		case <-ctx.Done():
		}
	}
	close(turns)
	all.Wait()
	return context.Cause(ctx)
}

func (o orders) agent(ctx context.Context, turns <-chan int) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(o.URL, "http://"))
	if err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for i := range turns {
		if err = beat(c, in, fmt.Sprint("c", i%o.Clusters), o.Body); err != nil {
			break
		}
	}
	return errors.Join(err, c.Close())
}

func beat(c net.Conn, in *bufio.Reader, cluster, body string) error {
	request := "POST /v1/clusters/" + cluster + "/heartbeat HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("a heartbeat of %s: %s %s", cluster, answer.Status, text)
	}
	return err
}
