// Command exporter plays the fleet of the demo: it shows figures of sites to
// Prometheus and lets somebody change them.
//
//	exporter -sites '{"berlin":{"electricity":0.4,"heat":8}}'   serves them
//	exporter -await http://127.0.0.1:9090                       waits until Prometheus has them
//	exporter -set http://127.0.0.1:9999 electricity_price berlin 0.9
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "exporter:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(ctx context.Context) error {
	address := flag.String("listen", "127.0.0.1:0", "address to serve on")
	text := flag.String("sites", "{}", "JSON object: electricity and heat by site")
	target := flag.String("set", "", "address of a running exporter, to give it the figure that the arguments name: METRIC SITE VALUE")
	prometheusURL := flag.String("await", "", "address of a Prometheus, to wait until it has figures")
	flag.Parse()
	if *prometheusURL != "" {
		return await(ctx, *prometheusURL)
	}
	if *target != "" {
		return set(ctx, *target, flag.Args())
	}
	var sites map[string]struct{ Electricity, Heat float64 }
	if err := json.Unmarshal([]byte(*text), &sites); err != nil {
		return fmt.Errorf("-sites: %w", err)
	}
	f := &figures{began: time.Now(), base: map[figure]float64{}}
	for site, s := range sites {
		f.base[figure{"electricity_price", site}] = s.Electricity
		f.base[figure{"heat_demand", site}] = s.Heat
	}
	return serve(ctx, *address, f)
}

// figure is one metric of one site.
type figure struct{ metric, site string }

// figures are the present values.
type figures struct {
	began time.Time
	mu    sync.Mutex
	base  map[figure]float64
}

// Describe implements prometheus.Collector. It describes nothing, because the metrics are not known in advance.
func (f *figures) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. Every value varies a little around its base, like real metrics.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	minutes := time.Since(f.began).Minutes()
	for name, base := range f.base {
		phase := float64(len(name.site))
		value := base * (1 + 0.03*math.Sin(2*math.Pi*minutes+phase))
		desc := prometheus.NewDesc(name.metric, "A figure of a site.", []string{"site"}, nil)
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, name.site)
	}
}

// change sets a new base from the form values metric, site and value.
func (f *figures) change(w http.ResponseWriter, r *http.Request) {
	value, err := strconv.ParseFloat(r.FormValue("value"), 64)
	if err != nil {
		http.Error(w, "value must be a number", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := figure{r.FormValue("metric"), r.FormValue("site")}
	if _, ok := f.base[name]; !ok {
		http.Error(w, fmt.Sprintf("there is no figure %s of site %s", name.metric, name.site), http.StatusNotFound)
		return
	}
	f.base[name] = value
}

func serve(ctx context.Context, address string, f *figures) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(f); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("POST /figures", f.change)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("exporter ready at http://" + listener.Addr().String())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // no response is pending any more
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// await waits until a Prometheus has scraped the metrics.
func await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := promapi.NewClient(promapi.Config{Address: url})
	if err != nil {
		return err
	}
	for {
		result, _, _, err := promv1.NewAPI(client).Query(ctx, "electricity_price", time.Time{})
		if vector, ok := result.(model.Vector); ok && len(vector) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("there is no electricity_price in the Prometheus at %s yet", url), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// set sets a value of a running exporter.
func set(ctx context.Context, target string, args []string) error {
	if len(args) != 3 {
		return errors.New("-set needs METRIC SITE VALUE")
	}
	form := fmt.Sprintf("metric=%s&site=%s&value=%s", args[0], args[1], args[2])
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target+"/figures", strings.NewReader(form))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the exporter answers %s", resp.Status)
	}
	return nil
}
