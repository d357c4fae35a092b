//go:build integration

package integration

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

// The flood continues until every client has been served this often, and until the server has closed this many idle
// connections.
const (
	servedInFlood = 30
	expiredFlood  = 2000
)

// floods are sent on a connection before it goes silent. A server with TLS waits for the rest of each of them, too.
var floods = []string{"", "", "", "GET / HTTP/1.1\r\nHost: ", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"}

// flood keeps connections open from many addresses: as many as the server accepts, and a new one for each that it
// closes.
type flood struct {
	opened, failed atomic.Int64
	expired        atomic.Int64 // those that the server accepted and closed after a second or more
}

func (f *flood) run(stop <-chan struct{}, from net.IP, to, text string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: time.Second}
	buffer := make([]byte, 1024)
	for {
		select {
		case <-stop:
			return
		case <-time.After(250 * time.Millisecond): // this process needs time, too
		}
		conn, err := dialer.Dial("tcp", to)
		if err != nil {
			f.failed.Add(1)
			continue
		}
		f.opened.Add(1)
		opened := time.Now()
		done := make(chan struct{})
		go func() {
			select {
			case <-stop:
			case <-done:
			}
			_ = conn.Close()
		}()
		_, err = io.WriteString(conn, text)
		for err == nil {
			_, err = conn.Read(buffer)
		}
		if time.Since(opened) > time.Second {
			f.expired.Add(1)
		}
		close(done)
	}
}

// closed reports whether the server closed a connection without an answer.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// TestSilentConnections floods both listeners of a server that may open few files, from 50 addresses. Clients are
// served throughout: on persistent and on new connections, from a separate address and from one of the flood's.
func TestSilentConnections(t *testing.T) {
	const addresses, each = 50, 20 // from each address to each listener: 2000 in all
	webhook := proxytest.FreeAddress(t)
	p := startCommand(t, "bash", "-c", `ulimit -n 1024; exec "$@"`, "bash", servertest.Binary(t), "serve", "--data-dir", t.TempDir(),
		"--listen", "127.0.0.1:0", "--webhook-listen", webhook, "--keep-revisions", "1m")
	listeners := []string{strings.TrimPrefix(p.url, "http://"), webhook}

	stop, attack := make(chan struct{}), &flood{}
	var running sync.WaitGroup
	defer running.Wait()
	stopAll := sync.OnceFunc(func() { close(stop) })
	defer stopAll()
	for i := range addresses {
		for j := range each {
			for _, to := range listeners {
				running.Go(func() { attack.run(stop, net.IPv4(127, 0, 1, byte(i+1)), to, floods[j%len(floods)]) })
			}
		}
	}

	var mu sync.Mutex
	served, again, slowest := map[string]int{}, map[string]int{}, map[string]time.Duration{}
	good := func(name string, request func(n int) error) {
		running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
				began := time.Now()
				err := request(n)
				if closed(err) && strings.Contains(name, "new connections") {
					// This process was too busy to send anything within the grace of a new connection.
					mu.Lock()
					again[name]++
					mu.Unlock()
					continue
				}
				if err != nil {
					t.Errorf("%s, request %d: %v", name, n, err)
					continue
				}
				took := time.Since(began)
				mu.Lock()
				served[name]++
				slowest[name] = max(slowest[name], took)
				mu.Unlock()
			}
		})
	}
	ask := func(from net.IP, url string, keepAlive bool) func(int) error {
		transport := &http.Transport{
			DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: !keepAlive, ForceAttemptHTTP2: keepAlive,
		}
		t.Cleanup(transport.CloseIdleConnections)
		asking := &http.Client{Transport: transport, Timeout: time.Minute}
		return func(int) error {
			resp, err := asking.Get(url)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode >= 429 {
				return fmt.Errorf("status %d, %w", resp.StatusCode, err)
			}
			return nil
		}
	}
	mine, theirs := net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 1, 1)
	for what, from := range map[string]net.IP{"own address": mine, "address of the flood": theirs} {
		good("API, new connections, "+what, ask(from, p.url+"/v1/clusters", false))
		good("API, open connection, "+what, ask(from, p.url+"/v1/clusters", true))
		good("webhook, new connections, "+what, ask(from, "https://"+webhook+"/nothing", false))
		good("webhook, open connection, "+what, ask(from, "https://"+webhook+"/nothing", true))
	}
	writer, err := client.New(client.Options{Endpoint: p.url})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	good("writes", func(n int) error {
		object := cluster(fmt.Sprintf("c%d", n%100), strconv.Itoa(n))
		object.SetDefaults()
		_, err := writer.Put(t.Context(), object, client.PutOptions{})
		return err
	})

	most := 0
	took := eventually.Within(t, 3*eventually.Limit, "the clients are served during a repeated flood", func() bool {
		if !p.alive() {
			t.Fatalf("the server exited:\n%s", p.stderr.Tail())
		}
		if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)); err == nil {
			most = max(most, len(files))
		}
		mu.Lock()
		defer mu.Unlock()
		return len(served) == 9 && slices.Min(slices.Collect(maps.Values(served))) >= servedInFlood && attack.expired.Load() >= expiredFlood
	})
	stopAll()
	running.Wait()
	t.Logf("%d connections were opened in %s, %d closed by the server after they had waited, %d not accepted within a second; the server had up to %d files open",
		attack.opened.Load(), took.Round(time.Second), attack.expired.Load(), attack.failed.Load(), most)
	if attack.opened.Load() < addresses*each*2 {
		t.Error("too few connections for a flood")
	}
	if most > 960 {
		t.Errorf("%d files were open, which leaves too few for the store", most)
	}
	for name, n := range served {
		t.Logf("%s: %d served, %d closed before their request, the slowest in %s", name, n, again[name], slowest[name].Round(time.Millisecond))
		if again[name] > n {
			t.Errorf("%s: most were closed before their request", name)
		}
	}
	if !p.stderr.Contains("the limit of open files allows no more") {
		t.Error("the log does not say that fewer connections are accepted than the flag allows")
	}
	get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: "c0"}) // the writes still exist
}
