//go:build faults

package faults

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// prometheus is a query API of Prometheus with faults.
type prometheus struct {
	server *httptest.Server
	asked  atomic.Int64 // number of requests in the present mode

	mu     sync.Mutex
	mode   string
	values map[string]float64 // values by query
	storm  bool               // all values change with every request
	closed chan struct{}
}

func startPrometheus(t testing.TB) *prometheus {
	f := &prometheus{values: map[string]float64{}, closed: make(chan struct{})}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		close(f.closed)
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

func (f *prometheus) behave(mode string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode = mode
	f.asked.Store(0)
}

func (f *prometheus) set(query string, value float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[query] = value
}

// ServeHTTP implements http.Handler.
func (f *prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	f.mu.Lock()
	mode := f.mode
	f.mu.Unlock()
	f.asked.Add(1)
	block := []byte(strings.Repeat(" ", 1<<20))
	switch mode {
	case "hangs":
		select {
		case <-r.Context().Done():
		case <-f.closed:
		}
		return
	case "breaks off":
		panic(http.ErrAbortHandler)
	case "500":
		http.Error(w, "no", http.StatusInternalServerError)
		return
	case "redirects in a circle":
		http.Redirect(w, r, r.URL.Path+"?again", http.StatusTemporaryRedirect)
		return
	case "10 GB":
		for range 10_000 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		return
	case "gzip bomb":
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		for range 10_000 {
			if _, err := zipped.Write(block); err != nil {
				return
			}
		}
		return
	case "not JSON":
		_, _ = io.WriteString(w, "<html>\x00\xff")
		return
	case "a byte now and then":
		for range 100 {
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-f.closed:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Join(f.samples(query, mode), ",")+`]}}`)
}

// samples splits the batch that the server requests.
func (f *prometheus) samples(expression, mode string) []string {
	parts := strings.Split(expression, "label_replace(")
	if len(parts) == 1 {
		parts = []string{"", "(" + expression + "\n"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var samples []string
	for i, part := range parts[1:] {
		query, rest, _ := strings.Cut(part, "\n")
		query = strings.TrimPrefix(strings.TrimPrefix(query, "vector"), "(")
		number := ""
		if fields := strings.Split(rest, `"`); len(fields) > 3 {
			number = fields[3]
		}
		value, known := f.values[query]
		if !known {
			continue
		}
		text, stamp := fmt.Sprint(value), float64(time.Now().Unix())
		if f.storm {
			value += 31.7
			if value > 95 {
				value -= 90
			}
			f.values[query] = value
		}
		switch mode {
		case "not a number":
			text = []string{"NaN", "+Inf", "-Inf", "x", "1e308", "-1e308"}[i%6]
		case "half is missing":
			if i%2 == 1 {
				continue
			}
		case "stale":
			stamp -= 86400
		case "twice":
			samples = append(samples, fmt.Sprintf(`{"metric":{"scheduler_query":%q,"zz":"b"},"value":[%f,"99"]}`, number, stamp))
		case "unknown series":
			samples = append(samples, fmt.Sprintf(`{"metric":{"scheduler_query":"%d"},"value":[%f,"99"]}`, 1000+i, stamp))
		}
		samples = append(samples, fmt.Sprintf(`{"metric":{"scheduler_query":%q},"value":[%f,%q]}`, number, stamp, text))
	}
	return samples
}

// rated creates clusters in a group that a provider rates, and placements that follow the ratings.
func (w *world) rated(group, number int, f *prometheus, placements int) {
	w.t.Helper()
	provider := "live-" + groupName(group)
	w.mustPut(&api.MetricsProvider{
		Metadata: api.Metadata{Name: provider},
		Spec: api.MetricsProviderSpec{
			Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: f.server.URL}, Interval: "1s", Timeout: "900ms",
		},
	})
	for i := range number {
		cluster := clusterName(group*clustersPerGroup + i%clustersPerGroup)
		if number > clustersPerGroup {
			cluster = fmt.Sprintf("s%d", i) // separate clusters, in no group
		}
		f.set(cluster, 1+97*float64(i)/float64(number))
		w.mustPut(&api.Metric{
			Metadata: api.Metadata{Name: "m-" + cluster},
			Spec:     api.MetricSpec{Min: pointer(0.0), Max: pointer(100.0), MetricsProvider: api.MetricProviderRef{Name: provider, Metric: cluster}},
		})
		w.mustPut(&api.Cluster{
			Metadata: api.Metadata{Name: cluster, Labels: map[string]string{groupLabel: groupName(group)}},
			Spec:     api.ClusterSpec{Metrics: []api.MetricRef{{Name: "m-" + cluster, Weight: pointer(1.0)}}},
		})
	}
	for i := range placements {
		w.mustPut(placement(fmt.Sprintf("%s-%d", provider, i), groupName(group), 1, 0))
	}
}

// follows waits until a placement has moved to the cluster that a provider now rates best.
func (w *world) follows(group int, f *prometheus, turn int) {
	w.t.Helper()
	best := clusterName(group*clustersPerGroup + turn%clustersPerGroup)
	for i := range clustersPerGroup {
		cluster := clusterName(group*clustersPerGroup + i)
		value := float64(10 + i)
		if cluster == best {
			value = 90
		}
		f.set(cluster, value)
	}
	key := api.KeyOf(placement(fmt.Sprintf("live-%s-0", groupName(group)), "", 1, 0))
	eventually.True(w.t, fmt.Sprintf("%s is placed on %s", key, best), func() bool {
		object, err := w.p().client.Get(context.Background(), key)
		if err != nil {
			return false
		}
		p, ok := object.(*api.Placement)
		return ok && len(p.Status.Clusters) == 1 && p.Status.Clusters[0] == best
	})
}

// TestFaultMetricsProvider has a metrics provider fail in every way. Meanwhile the metrics of another one are followed,
// and afterwards its own.
func TestFaultMetricsProvider(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 15)
	w := newWorld(t, f, undisturbed(dataDir(t))...)
	bad, sound := startPrometheus(t), startPrometheus(t)
	const badGroup, soundGroup = groups, groups + 1
	w.rated(badGroup, clustersPerGroup, bad, 2)
	w.rated(soundGroup, clustersPerGroup, sound, 2)
	w.startWriting()
	turn := 0
	for range rounds(1, 10) {
		for _, mode := range []string{
			"hangs", "breaks off", "500", "redirects in a circle", "10 GB", "gzip bomb", "not JSON", "a byte now and then",
			"not a number", "half is missing", "stale", "twice", "unknown series",
		} {
			bad.behave(mode)
			turn++
			w.follows(soundGroup, sound, turn)
			eventually.True(t, "the provider that "+mode+" is asked", func() bool { return bad.asked.Load() > 0 })
			f.happened()
			bad.behave("")
			w.follows(badGroup, bad, turn)
		}
		w.judgeQuicklyAfter()
	}
	w.stopWriting()
	w.judge()
}

// judgeQuicklyAfter stops the writers and runs the quick oracles.
func (w *world) judgeQuicklyAfter() {
	w.t.Helper()
	w.stopWriting()
	w.judgeQuickly()
	w.startWriting()
}

// TestFaultMetricStorm changes every metric of a large fleet every second.
func TestFaultMetricStorm(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 16)
	w := newWorld(t, f, undisturbed(dataDir(t), "--log-level", "error")...)
	source := startPrometheus(t)
	const group = groups
	w.rated(group, rounds(200, 10_000), source, 40)
	source.mu.Lock()
	source.storm = true
	source.mu.Unlock()
	source.behave("")
	w.startWriting()
	stop := w.good()
	want := int64(rounds(8, 120))
	eventually.True(t, "the storm has lasted", func() bool { return source.asked.Load() >= want })
	f.happened()
	stop()
	w.stopWriting()
	// Afterwards nothing is decided, because nothing changes.
	source.mu.Lock()
	source.storm = false
	source.mu.Unlock()
	var quiet, last int64
	eventually.True(t, "decisions settle", func() bool {
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // at rest, nothing changes for a while
		w.judgeNothing()
		there, err := objects(w.p())
		if err != nil {
			return false
		}
		var sum int64
		for _, object := range there {
			if p, ok := object.(*api.Placement); ok {
				sum += p.Status.DecisionRevision
			}
		}
		if sum == last {
			quiet++
		} else {
			quiet = 0
		}
		last = sum
		return quiet >= 4
	})
	w.judge()
}

// judgeNothing fails the test if the server has exited.
func (w *world) judgeNothing() {
	w.t.Helper()
	if !w.p().alive() {
		w.t.Fatalf("the server has exited:\n%s", w.p().stderr.Tail())
	}
}

// TestFaultMassLoss takes a third of the clusters offline at once, and brings them back.
func TestFaultMassLoss(t *testing.T) {
	f := begin(t, 17)
	w := newWorld(t, f, undisturbed(dataDir(t))...)
	number := rounds(20, 500)
	const first = 20 // after the groups of the world
	values := map[string]float64{}
	var lost []api.Object
	var all []api.Object
	for g := first; g < first+number; g++ {
		for i := range clustersPerGroup {
			name := clusterName(g*clustersPerGroup + i)
			values[name] = float64(10 + 20*i)
			c := &api.Cluster{
				Metadata: api.Metadata{Name: name, Labels: map[string]string{groupLabel: groupName(g)}},
				Spec:     api.ClusterSpec{Metrics: []api.MetricRef{{Name: "m-" + name, Weight: pointer(1.0)}}},
			}
			all = append(all, &api.Metric{
				Metadata: api.Metadata{Name: "m-" + name},
				Spec:     api.MetricSpec{Min: pointer(0.0), Max: pointer(100.0), MetricsProvider: api.MetricProviderRef{Name: "mass", Metric: name}},
			}, c)
			if i == clustersPerGroup-1 || i == 0 && g%3 == 0 {
				lost = append(lost, c)
			}
		}
	}
	w.mustPut(&api.MetricsProvider{Metadata: api.Metadata{Name: "mass"}, Spec: api.MetricsProviderSpec{Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: values}}})
	for _, object := range all {
		w.mustPut(object)
	}
	for g := first; g < first+number; g++ {
		w.mustPut(placement("mass-"+groupName(g), groupName(g), 1, 0))
	}
	revisions := func() int64 {
		there, err := objects(w.p())
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for key, object := range there {
			if p, ok := object.(*api.Placement); ok && strings.HasPrefix(key.Name, "mass-") {
				sum += p.Status.DecisionRevision
			}
		}
		return sum
	}
	for range rounds(2, 5) {
		w.startWriting()
		before := revisions()
		var deleting sync.WaitGroup
		for _, object := range lost {
			deleting.Go(func() {
				if err := w.p().client.Delete(context.Background(), api.KeyOf(object)); err != nil {
					t.Error(err)
				}
				f.happened()
			})
		}
		deleting.Wait()
		eventually.True(t, "nothing is on a deleted cluster", func() bool {
			there, err := objects(w.p())
			if err != nil {
				return false
			}
			for _, clusters := range decisions(there) {
				for _, cluster := range clusters {
					name, _, _ := strings.Cut(cluster, "=")
					if there[api.Key{Kind: api.KindCluster, Name: name}] == nil {
						return false
					}
				}
			}
			return true
		})
		w.stopWriting()
		if moved := revisions() - before; moved > int64(2*number) {
			t.Errorf("%d decisions for %d placements: they go back and forth", moved, number)
		}
		w.judgeQuickly()
		for _, object := range lost {
			w.mustPut(object)
		}
	}
	w.judge()
}
