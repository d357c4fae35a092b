//go:build faults

package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

func (p *process) address() string {
	_, address, _ := strings.Cut(p.url, "://")
	return address
}

// from connects to the server from one of the many local addresses.
func (p *process) from(source int) (net.Conn, error) {
	dialer := net.Dialer{Timeout: eventually.Limit, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(source>>8), byte(1+source&0x7f))}}
	return dialer.Dial("tcp", p.address())
}

// good repeatedly checks that well-behaved clients are served, until stop is called, which returns the longest time
// that they waited.
func (w *world) good() (stop func()) {
	halt := make(chan struct{})
	var running sync.WaitGroup
	var longest atomic.Int64
	var asked atomic.Int64
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-halt:
				return
			case <-time.After(100 * time.Millisecond):
			}
			began := time.Now()
			if a, err := w.p().ask(http.MethodGet, fmt.Sprintf("/v1/clusters/c%d", n%5), ""); err != nil || a.status != 200 {
				w.t.Errorf("a well-behaved client got %d, %v", a.status, err)
			}
			longest.Store(max(longest.Load(), int64(time.Since(began))))
			asked.Add(1)
		}
	})
	return func() {
		eventually.True(w.t, "well-behaved clients are served", func() bool { return asked.Load() > 0 })
		close(halt)
		running.Wait()
		w.t.Logf("%d requests of well-behaved clients, the slowest took %s", asked.Load(), time.Duration(longest.Load()).Round(time.Millisecond))
	}
}

// TestFaultCorruptRequests sends invalid requests while others write.
func TestFaultCorruptRequests(t *testing.T) {
	f := begin(t, 18)
	w := newWorld(t, f, undisturbed(dataDir(t), "--log-level", "error")...)
	w.startWriting()
	send := func(method, path, body string) {
		t.Helper()
		r, err := http.NewRequest(method, w.p().url+"/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//" + w.p().address() + path // unescaped
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			f.happened() // the connection was cut: the server did not want the body
			return
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body)
		f.happened()
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s %.100q with %.200q: got %d %.300s, want 4xx", method, path, body, resp.StatusCode, answer)
		}
	}
	const at = "/v1/namespaces/shop/placements/corrupt"
	sound := `{"kind":"placement","metadata":{"name":"corrupt","namespace":"shop"},"spec":{"number_of_clusters":1}}`
	for _, body := range []string{
		``, `{`, `[]`, `null`, `"x"`, `7`, "\x00", "\xff\xfe", sound + sound, sound[:len(sound)-1], `{"kind":"cluster"}`,
		strings.Replace(sound, `1`, `"1"`, 1), strings.Replace(sound, `1`, `-1`, 1), strings.Replace(sound, `1`, `1e999`, 1), strings.Replace(sound, `1`, `1.5`, 1),
		strings.Replace(sound, `"spec"`, `"unknown":1,"spec"`, 1), strings.Replace(sound, `"spec":`, `"spec":{},"spec":`, 1),
		strings.Replace(sound, `"shop"`, `"`+strings.Repeat("n", 64<<10)+`"`, 1), strings.Replace(sound, `"shop"`, "\"s\x00p\"", 1),
		strings.Replace(sound, `"shop"`, "\"\xc3\x28\"", 1), strings.Replace(sound, `"shop"`, `"../../etc"`, 1),
		strings.Replace(sound, `1}`, `1,"cluster_sets":[`+strings.Repeat(`"a",`, 200_000)+`"a"]}`, 1),
		strings.Replace(sound, `1}`, `1,"label_constraints":["((((("]}`, 1),
		strings.Repeat(`{"spec":`, 50_000), strings.Repeat(`[`, 900_000),
	} {
		send(http.MethodPut, at, body)
	}
	for _, path := range []string{
		"/v1/namespaces/shop/placements/..%2f..%2fx", "/v1/namespaces/../placements/x", "/v1/namespaces//placements/x", "/v1/clusters/%00", "/v1/clusters/%zz",
		"/v1/clusters/" + strings.Repeat("x", 60_000), "/v1/clusters/A_B", "/v1/nothing", "/v1/clusters/%2e%2e",
	} {
		send(http.MethodPut, path, sound)
	}
	for range rounds(300, 20_000) {
		body := []byte(sound)
		for range 1 + w.random.IntN(4) {
			body[w.random.IntN(len(body))] = byte(w.random.IntN(32)) // never valid in JSON outside of whitespace
		}
		if !bytes.ContainsFunc(body, func(r rune) bool { return r < 32 && !strings.ContainsRune("\t\n\r", r) }) {
			continue
		}
		send(http.MethodPut, at, string(body))
	}
	w.awaitWrites(20)
	w.stopWriting()
	w.judge()
}

// TestFaultHugeAndSlowBodies sends endless bodies, and some that take forever.
func TestFaultHugeAndSlowBodies(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 19)
	w := newWorld(t, f, undisturbed(dataDir(t), "--log-level", "error")...)
	w.startWriting()
	stop := w.good()
	head := "PUT /v1/clusters/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	huge := func(name, header, piece string) {
		t.Helper()
		c, err := w.p().from(1)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(eventually.Limit))
		if _, err := io.WriteString(c, head+header+"\r\n"); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for ; sent < 64<<20; sent += len(piece) {
			if _, err := io.WriteString(c, piece); err != nil {
				break // the server has ended the connection
			}
		}
		f.happened()
		if sent >= 64<<20 {
			t.Errorf("%s: the server read 64 MiB", name)
		}
		if text, _ := io.ReadAll(io.LimitReader(c, 4096)); len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 413") {
			t.Errorf("%s: %.200s", name, text)
		}
	}
	for range rounds(3, 50) {
		huge("10 GB", "Content-Length: 10000000000\r\n", strings.Repeat(" ", 64<<10))
		huge("no end", "Transfer-Encoding: chunked\r\n", "10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n")
	}
	// Bodies that arrive a byte at a time are cut off in the end.
	var slowly sync.WaitGroup
	for n := range rounds(40, 400) {
		slowly.Go(func() {
			c, err := w.p().from(n)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := io.WriteString(c, head+"Content-Length: 1000\r\n\r\n{"); err != nil {
				t.Error(err)
				return
			}
			f.happened()
			for began := time.Now(); time.Since(began) < eventually.Limit; {
				if _, err := io.WriteString(c, " "); err != nil {
					return
				}
				_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				if _, err := c.Read(make([]byte, 1)); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
					return // answered, or cut off
				}
			}
			t.Errorf("a body sent one byte at a time was not cut off within %s", eventually.Limit)
		})
	}
	slowly.Wait()
	stop()
	w.awaitWrites(10)
	w.stopWriting()
	w.judge()
}

// TestFaultSlowClients has many clients that send a header byte by byte, send nothing, or do not read.
func TestFaultSlowClients(t *testing.T) {
	f := begin(t, 20)
	w := newWorld(t, f, undisturbed(dataDir(t), "--log-level", "error")...)
	w.startWriting()
	stop := w.good()
	var clients sync.WaitGroup
	var cut atomic.Int64
	number := rounds(300, 3000)
	for n := range number {
		clients.Go(func() {
			c, err := w.p().from(n)
			if err != nil {
				cut.Add(1)
				return
			}
			defer c.Close()
			f.happened()
			text := []string{"GET /v1/placements HTTP/1.1\r\nX-Slow: ", "\x16\x03\x01", "", "GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n"}[n%4]
			if n%4 == 3 {
				if tcp, ok := c.(*net.TCPConn); ok {
					_ = tcp.SetReadBuffer(4096) // it reads nothing, and its buffer is small
				}
				_, _ = io.WriteString(c, text)
				time.Sleep(5 * time.Second) //nolint:forbidigo // the client neither reads nor disconnects
				return
			}
			_, _ = io.WriteString(c, text)
			for began := time.Now(); time.Since(began) < eventually.Limit; {
				if text != "" {
					if _, err := io.WriteString(c, "x"); err != nil {
						cut.Add(1)
						return
					}
				}
				_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				if _, err := c.Read(make([]byte, 1)); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
					cut.Add(1)
					return
				}
			}
			t.Errorf("a connection without a request was kept for %s", eventually.Limit)
		})
	}
	clients.Wait()
	t.Logf("%d of %d connections were cut off", cut.Load(), number)
	stop()
	w.awaitWrites(10)
	w.stopWriting()
	w.judge()
}

// TestFaultIdleWatchers has many clients wait for the same change, wakes them all at once, and has them all reconnect
// at once.
func TestFaultIdleWatchers(t *testing.T) {
	f := begin(t, 21)
	w := newWorld(t, f, undisturbed(dataDir(t), "--log-level", "error", "--max-connections", "12000")...)
	if err := extra(w, "watched"); err != nil {
		t.Fatal(err)
	}
	key := api.KeyOf(placement("watched", "g0", 1, 0))
	number := rounds(400, 8000)
	for round := range rounds(2, 5) {
		object, err := w.p().client.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var waiting sync.WaitGroup
		var asked, told atomic.Int64
		path := fmt.Sprintf("%s?wait=50s&resource_version=%s", key.URLPath(), object.Meta().ResourceVersion)
		for n := range number {
			waiting.Go(func() {
				c, err := w.p().from(n)
				if err != nil {
					t.Errorf("connect: %v", err)
					return
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(eventually.Limit))
				if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path); err != nil {
					t.Error(err)
					return
				}
				asked.Add(1)
				text, err := io.ReadAll(c)
				if !strings.HasPrefix(string(text), "HTTP/1.1 200") {
					t.Errorf("a waiting request got %.100q, %v", text, err)
					return
				}
				told.Add(1)
			})
		}
		eventually.True(t, "all are waiting", func() bool { return asked.Load() == int64(number) })
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // nothing shows that the last ones have been read
		began := time.Now()
		if err := extra(w, "watched"); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		f.happened()
		t.Logf("round %d: %d of %d waiting requests were answered within %s", round, told.Load(), number, time.Since(began).Round(time.Millisecond))
	}
	w.judge()
}

// TestFaultConnectionFlood opens as many connections as possible, from one address and from many, to a server that may
// open 1024 files.
func TestFaultConnectionFlood(t *testing.T) {
	f := begin(t, 22)
	w := &world{t: t, fault: f, binary: serverBinary, args: undisturbed(dataDir(t), "--log-level", "error"), ledger: newLedger(), seen: newHistory(), random: seeded.Rand(t)}
	t.Cleanup(w.stopWriting)
	p := launch(t, []string{"sh", "-c", `ulimit -n 1024; exec "$0" "$@"`}, w.binary, w.args...)
	w.follow(p.awaitReady())
	w.fill()
	w.startWriting()
	stop := w.good()
	for _, sources := range []int{1, 100} {
		var open []net.Conn
		refused := 0
		for n := range rounds(3000, 20_000) {
			c, err := w.p().from(n % sources)
			if err != nil {
				refused++
				continue
			}
			open = append(open, c)
			f.happened()
		}
		time.Sleep(time.Duration(rounds(3, 120)) * time.Second) //nolint:forbidigo // duration of the flood
		t.Logf("from %d addresses: %d connections, %d rejected", sources, len(open), refused)
		if !w.p().alive() {
			t.Errorf("the server has exited:\n%s", w.p().stderr.Tail())
		}
		for _, c := range open {
			c.Close()
		}
	}
	w.awaitWrites(20)
	stop()
	w.stopWriting()
	w.judge()
}

// TestFaultTokenBruteForce guesses tokens from one address, and uses a revoked one. Clients on other addresses are not
// affected.
func TestFaultTokenBruteForce(t *testing.T) {
	f := begin(t, 23)
	dir := dataDir(t)
	out, code, err := command("token", "create", "--data-dir", dir, "--role", "admin")
	if err != nil || code != 0 {
		t.Fatalf("%v %d %s", err, code, out)
	}
	token := strings.TrimSpace(out)
	p := launch(t, nil, serverBinary, undisturbed(dir, "--log-level", "error")...).awaitReady()
	transport := func(source int) *http.Client {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, 0, byte(source))}}
		return &http.Client{Timeout: eventually.Limit, Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16}}
	}
	ask := func(c *http.Client, token string) int {
		r, err := http.NewRequest(http.MethodGet, p.url+"/v1/clusters", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := c.Do(r)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	bad, good := transport(66), transport(1)
	defer bad.CloseIdleConnections()
	defer good.CloseIdleConnections()
	id, _, _ := strings.Cut(token, ".")
	var guessing sync.WaitGroup
	answers := sync.Map{}
	halt := make(chan struct{})
	for worker := range 8 {
		guessing.Go(func() {
			for n := range rounds(300, 20_000) {
				status := ask(bad, fmt.Sprintf("%s.%032d", id, n*8+worker))
				answers.Store(status, true)
				f.happened()
			}
		})
	}
	go func() { guessing.Wait(); close(halt) }()
	for served, going := 0, true; going; {
		if status := ask(good, token); status != 200 {
			t.Errorf("a valid client got %d meanwhile", status)
		}
		served++
		select {
		case <-halt:
			going = false
			t.Logf("%d requests of a valid client meanwhile", served)
		case <-time.After(20 * time.Millisecond):
		}
	}
	answers.Range(func(status, _ any) bool {
		if status != 401 && status != 429 {
			t.Errorf("a guess got %v, want 401 or 429", status)
		}
		return true
	})
	if _, limited := answers.Load(429); !limited {
		t.Error("the rate of guesses was not limited")
	}
	// A revoked token stops working within a second.
	second, code, err := command("token", "create", "--endpoint", p.url, "--token", token, "--role", "viewer")
	if err != nil || code != 0 {
		t.Fatalf("%v %d %s", err, code, second)
	}
	second = strings.TrimSpace(second)
	if status := ask(good, second); status != 200 {
		t.Fatalf("new token: got %d, want 200", status)
	}
	if out, code, err := command("token", "revoke", "--endpoint", p.url, "--token", token, second); err != nil || code != 0 {
		t.Fatalf("%v %d %s", err, code, out)
	}
	took := eventually.True(t, "the revoked token is rejected", func() bool { return ask(good, second) == 401 })
	t.Logf("the revoked token was accepted for %s", took.Round(time.Millisecond))
	f.happened()
	p.stop()

	// The oracles need a world without tokens: the same directory, after the last token has been revoked.
	if out, code, err := command("token", "revoke", "--data-dir", dir, token); err != nil || code != 0 {
		t.Fatalf("%v %d %s", err, code, out)
	}
	newWorld(t, f, undisturbed(dir)...).judge()
}

// certificate writes a certificate for 127.0.0.1, which is valid for a given time, and its key.
func certificate(t testing.TB, dir string, number int64, from, until time.Time) (certFile, keyFile string) {
	t.Helper()
	template := certtest.Loopback("faults")
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(number), from, until
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certtest.SelfSigned(t, template).Write(t, certFile, keyFile)
	return certFile, keyFile
}

// TestFaultTLS replaces the certificate of a running server by a valid and by a broken one, starts with an expired one,
// and sends invalid handshakes.
func TestFaultTLS(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 24)
	dir, files := dataDir(t), t.TempDir()
	now := time.Now()
	certFile, keyFile := certificate(t, files, 1, now.Add(-time.Hour), now.Add(1000*time.Hour))
	p := launch(t, nil, serverBinary, undisturbed(dir, "--tls-cert-file", certFile, "--tls-key-file", keyFile)...).awaitReady()
	shake := func(config *tls.Config) (*tls.Conn, error) {
		config.InsecureSkipVerify = true
		return tls.DialWithDialer(&net.Dialer{Timeout: eventually.Limit}, "tcp", p.address(), config)
	}
	serial := func() int64 {
		c, err := shake(&tls.Config{})
		if err != nil {
			t.Logf("handshake: %v", err)
			return 0
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Fatalf("the first certificate has number %d", n)
	}
	certificate(t, files, 2, now.Add(-time.Hour), now.Add(1000*time.Hour))
	f.happened()
	eventually.True(t, "the new certificate is served", func() bool { return serial() == 2 })
	if err := os.WriteFile(certFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.happened()
	for range 20 {
		if n := serial(); n != 2 {
			t.Errorf("with an invalid file, the certificate has number %d, want 2", n)
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // nothing shows that a broken file has been read
	}
	expiredCert, expiredKey := certificate(t, t.TempDir(), 3, now.Add(-2*time.Hour), now.Add(-time.Hour))
	expired := launch(t, nil, serverBinary, undisturbed(dataDir(t), "--tls-cert-file", expiredCert, "--tls-key-file", expiredKey)...).awaitReady()
	f.happened()
	eventually.True(t, "the log mentions the expired certificate", func() bool { return expired.stderr.Contains("expired") })
	expired.kill()

	certFile, _ = certificate(t, files, 4, now.Add(-time.Hour), now.Add(1000*time.Hour))
	eventually.True(t, "a valid certificate is served again", func() bool { return serial() == 4 })
	if c, err := shake(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 was accepted")
	}
	f.happened()
	other, _ := certificate(t, t.TempDir(), 5, now.Add(-time.Hour), now.Add(time.Hour))
	stranger, err := client.New(client.Options{Endpoint: p.url, CACertFile: other, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Server(t.Context()); err == nil {
		t.Error("a client accepted a certificate that it does not trust")
	}
	if p.client, err = client.New(client.Options{Endpoint: p.url, CACertFile: certFile, MaxRetries: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.Close)

	// Streams that are opened and reset as fast as possible.
	for range rounds(3, 30) {
		resetRapidly(t, shake, f, rounds(2000, 20_000))
	}
	if _, err := p.client.Server(t.Context()); err != nil {
		t.Errorf("a well-behaved client is not served: %v", err)
	}
	p.stop()
	newWorld(t, f, undisturbed(dir)...).judge()
}

// resetRapidly opens and resets HTTP/2 streams until the server ends the connection.
func resetRapidly(t testing.TB, shake func(*tls.Config) (*tls.Conn, error), f *fault, streams int) {
	t.Helper()
	c, err := shake(&tls.Config{NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		t.Fatal("HTTP/2 was not negotiated")
	}
	_ = c.SetDeadline(time.Now().Add(eventually.Limit))
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(c, c)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, c) }()
	var header bytes.Buffer
	encoder := hpack.NewEncoder(&header)
	for id := uint32(1); id < uint32(2*streams); id += 2 {
		header.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/v1/placements"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: header.Bytes(), EndStream: true, EndHeaders: true})
		if err == nil {
			err = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		if err != nil {
			return // the server has ended the connection
		}
		f.happened()
	}
}

// TestFaultChurn creates and deletes objects, watches and connections for a while, with little memory. The last oracle
// checks for leaks.
func TestFaultChurn(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 25)
	w := &world{t: t, fault: f, binary: serverBinary, args: undisturbed(dataDir(t), "--log-level", "error"), ledger: newLedger(), seen: newHistory(), random: seeded.Rand(t)}
	t.Cleanup(w.stopWriting)
	p := launch(t, []string{"env", "GOMEMLIMIT=48MiB"}, w.binary, w.args...)
	w.follow(p.awaitReady())
	w.fill()
	w.startWriting()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rounds(10, 3600))*time.Second)
	defer cancel()
	var churning sync.WaitGroup
	for range 6 {
		churning.Go(func() {
			for ctx.Err() == nil {
				short, end := context.WithTimeout(ctx, 150*time.Millisecond)
				for _, err := range p.client.Watch(short, "") {
					if err != nil {
						break
					}
				}
				end()
				f.happened()
			}
		})
	}
	for n := range 2 {
		churning.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				object := placement(fmt.Sprintf("churn-%d-%d", n, i), "g1", 1, 0)
				if _, err := put(p, object); err != nil {
					t.Error(err)
					return
				}
				if err := p.client.Delete(context.Background(), api.KeyOf(object)); err != nil {
					t.Error(err)
					return
				}
				f.happened()
			}
		})
	}
	churning.Wait()
	w.stopWriting()
	w.judge()
}
