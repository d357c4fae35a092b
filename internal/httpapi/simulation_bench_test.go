package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// BenchmarkLargestSimulations sends the largest simulations that are admitted, as many at once as are
// admitted, and reports the memory of the process at its peak. The fleet is empty but for 100 clusters:
// what is measured is what a viewer can add.
func BenchmarkLargestSimulations(b *testing.B) {
	s := startEndToEnd(b, store.Options{DataDir: b.TempDir(), NoFsync: true})
	for i := range 100 {
		s.mustPut(fmt.Sprintf("/v1/clusters/c%d", i), `{"metadata":{"labels":{"zone":"a"}},"spec":{}}`)
	}
	s.mustPut("/v1/namespaces/shop/propagation-policies/all", `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],
		"placement":{"replica_scheduling":{"type":"Divided","division_preference":"Weighted"}}}}`)
	labels := make([]string, 12) // names count, too: with the rest nearly 40 values, and 4 million are admitted
	for i := range labels {
		labels[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	for _, c := range []struct {
		name, object string // %d is the number of the object
		steps        bool
		status       int
	}{
		{"nothing-in-objects", `{}`, false, http.StatusUnprocessableEntity},
		{"clusters", `{"kind":"cluster","metadata":{"name":"n%d","labels":{` + strings.Join(labels, ",") + `}},"spec":{}}`, false, http.StatusOK},
		{"placements", `{"kind":"placement","metadata":{"namespace":"shop","name":"p%d"},"spec":{"number_of_clusters":3,"label_constraints":["zone is a"]}}`, false, http.StatusOK},
		{"workloads", `{"kind":"workload","metadata":{"namespace":"shop","name":"w%d"},"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":9}}`, false, http.StatusOK},
		{"placements-in-steps", `{"kind":"placement","metadata":{"namespace":"shop","name":"p%d"},"spec":{"number_of_clusters":3}}`, true, http.StatusOK},
	} {
		b.Run(c.name, func(b *testing.B) {
			body := simulationOf(c.object, maxSimulated, c.steps)
			var answer int64
			cpu := cputime.Used(b)
			forgetPeak(b)
			for b.Loop() {
				var four errgroup.Group
				for range simulationSlots {
					four.Go(func() error {
						size, err := s.simulateOnce(b, body, c.status)
						answer = size
						return err
					})
				}
				if err := four.Wait(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(peakMiB(b), "peak-MiB")
			b.ReportMetric((cputime.Used(b)-cpu).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(len(body))/(1<<20), "request-MiB")
			b.ReportMetric(float64(answer)/(1<<20), "response-MiB")
		})
	}
}

// simulationOf returns a simulation of n objects, in which %d is the number of the object.
func simulationOf(object string, n int, steps bool) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"steps":%t,"objects":[`, steps)
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strings.Replace(object, "%d", strconv.Itoa(i), 1))
	}
	out.WriteString(`]}`)
	return out.Bytes()
}

// simulateOnce returns the size of the response, which it discards.
func (s *testServer) simulateOnce(b *testing.B, body []byte, status int) (int64, error) {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.url+"/v1/simulations", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// Four at once may exceed the time limit, which bounds their memory, too.
	if resp.StatusCode != status && resp.StatusCode != http.StatusServiceUnavailable {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return 0, fmt.Errorf("status %d, want %d: %s", resp.StatusCode, status, text)
	}
	return io.Copy(io.Discard, resp.Body)
}

// forgetPeak has the peak of the process' memory start again from what it has now.
func forgetPeak(b *testing.B) {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Skip(err)
	}
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMiB returns the most memory that the process has had.
func peakMiB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	kib, err := strconv.Atoi(string(peakLine.FindSubmatch(status)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}
