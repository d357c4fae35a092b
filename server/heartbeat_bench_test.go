package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/cputime"
)

// beatEvery is the time between two heartbeats of 10,000 agents that send one every 15
// seconds. One that comes while others do is cheaper than one on its own, so benchmarks
// keep to the rate.
const beatEvery = 15 * time.Second / 10_000

// BenchmarkHeartbeats is what a heartbeat costs that says nothing new. The figures
// include the agents, which do next to nothing, and every server, in the same process.
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
			beats := newAgents(b, s.url, agents)
			send := func(n int, every time.Duration) {
				beats.send(n, every, func(i int) string { return fmt.Sprint("c", i%clusters) }, c.body)
			}
			send(2*clusters, time.Microsecond)
			cpu := cputime.Used(b)
			b.ReportAllocs()
			b.ResetTimer()
			send(b.N, beatEvery)
			b.StopTimer()
			perBeat := (cputime.Used(b) - cpu).Seconds() / float64(b.N)
			b.ReportMetric(perBeat*1e6, "cpu-µs/op")
			b.ReportMetric(perBeat/beatEvery.Seconds(), "cores/10k-agents")
		})
	}
}

// agents send heartbeats over connections that stay open.
type agents struct {
	tb          testing.TB
	connections []net.Conn
}

func newAgents(tb testing.TB, url string, n int) *agents {
	tb.Helper()
	a := &agents{tb: tb}
	for range n {
		c, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = c.Close() })
		a.connections = append(a.connections, c)
	}
	return a
}

// send sends n heartbeats, one every so often, and waits for their answers.
func (a *agents) send(n int, every time.Duration, cluster func(i int) string, body string) {
	a.tb.Helper()
	turns := make(chan int)
	var all sync.WaitGroup
	for _, c := range a.connections {
		all.Go(func() {
			in := bufio.NewReader(c)
			for i := range turns {
				if err := beat(c, in, cluster(i), body); err != nil {
					a.tb.Error(err)
				}
			}
		})
	}
	pace := time.NewTicker(every)
	defer pace.Stop()
	for i := range n {
		<-pace.C
		turns <- i
	}
	close(turns)
	all.Wait()
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
