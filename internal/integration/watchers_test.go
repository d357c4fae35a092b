//go:build integration

package integration

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// TestWatchersThatDoNotRead writes large objects while many clients watch and read nothing. This must cost little more
// than without them, and nothing once they are gone.
func TestWatchersThatDoNotRead(t *testing.T) {
	t.Parallel()
	const watchers, writes = 250, 100
	p := startServer(t, t.TempDir(), "--keep-revisions", "1m", "--max-connections-per-ip", "300")
	written := 0
	write := func() time.Duration {
		began := p.cpu()
		for range writes {
			written++
			values := map[string]float64{}
			for i := range 1600 { // about 200 KiB
				values[fmt.Sprintf("%s-%d", strings.Repeat("x", 110), i)] = float64(written)
			}
			put(p, staticProvider("bulky", values))
		}
		return p.cpu() - began
	}
	write() // allocate everything that is cached once
	without := write()
	before := p.resident()

	conns := make([]net.Conn, watchers)
	for i := range conns {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /v1/watch HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 12)); err != nil { // the status
			t.Fatal(err)
		}
		conns[i] = conn
	}
	with := write()
	during := p.resident()
	for _, conn := range conns {
		_ = conn.Close()
	}
	var after float64
	took := time.Duration(0)
	began := time.Now()
	for {
		after, took = p.resident(), time.Since(began)
		if after <= 1.1*before || took > eventually.Limit {
			break
		}
		time.Sleep(time.Second) //nolint:forbidigo // an idle server returns memory
	}
	t.Logf("%d writes cost %s without and %s with %d watchers; resident memory %.0f MiB before, %.0f with them, %.0f MiB %s after they left",
		writes, without, with, watchers, before/(1<<20), during/(1<<20), after/(1<<20), took.Round(time.Second))
	if with > 2*without+time.Second { // the second is for accepting and closing them
		t.Errorf("%d watches that are not read cost %s of CPU time, the writes alone %s", watchers, with-without, without)
	}
	if after > 1.1*before {
		t.Errorf("%.0f MiB of the memory for %d watches were not released", (after-before)/(1<<20), watchers)
	}
}

// cpu returns the CPU time of the process.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	const user, system, perSecond = 11, 12, 100 // fields after the name, and their unit
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	var ticks int
	for _, field := range []int{user, system} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / perSecond
}

// resident returns the process's own memory in bytes, without the pages of the store's file, which belong to the
// system's cache.
func (p *process) resident() float64 {
	p.t.Helper()
	return p.memory("RssAnon")
}

// memory returns a memory statistic of the process in bytes, such as VmHWM, the maximum resident memory, or RssFile.
func (p *process) memory(name string) float64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return kib * 1024
		}
	}
	p.t.Fatal("the memory of the process is unknown")
	return 0
}
