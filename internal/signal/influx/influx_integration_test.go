//go:build integration

package influx

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// database is a real InfluxDB 1.8 with a user "krake", password "pw:x".
type database struct {
	t       *testing.T
	url     string
	command *exec.Cmd
	config  string
	binary  string
}

func startDatabase(t *testing.T, withFlux bool) *database {
	t.Helper()
	testbed := os.Getenv("SCHEDULER_TESTBED")
	if testbed == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		testbed = filepath.Join(home, ".cache", "scheduler-testbed")
	}
	binary := filepath.Join(testbed, "bin", "influxd")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("no InfluxDB: run scripts/build-influxdb.sh: %v", err)
	}
	dir, address := t.TempDir(), proxytest.FreeAddress(t)
	d := &database{t: t, url: "http://" + address, binary: binary, config: filepath.Join(dir, "influxdb.conf")}
	config := fmt.Sprintf(`reporting-disabled = true
bind-address = %q
[meta]
  dir = "%[2]s/meta"
[data]
  dir = "%[2]s/data"
  wal-dir = "%[2]s/wal"
[http]
  bind-address = %[3]q
  flux-enabled = %[4]t
  auth-enabled = true
`, proxytest.FreeAddress(t), dir, address, withFlux)
	if err := os.WriteFile(d.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	d.start()
	d.query("CREATE USER krake WITH PASSWORD 'pw:x' WITH ALL PRIVILEGES")
	d.query("CREATE DATABASE krake")
	return d
}

func (d *database) start() {
	d.t.Helper()
	d.command = exec.Command(d.binary, "run", "-config", d.config)
	if err := d.command.Start(); err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), eventually.Limit)
	defer cancel()
	for {
		if resp, err := http.Get(d.url + "/ping"); err == nil {
			_ = resp.Body.Close()
			return
		}
		select {
		case <-ctx.Done():
			d.t.Fatal("InfluxDB did not start")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (d *database) stop() {
	if d.command != nil {
		_ = d.command.Process.Kill()
		_ = d.command.Wait()
		d.command = nil
	}
}

func (d *database) request(path, body string, form bool) {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPost, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.SetBasicAuth("krake", "pw:x")
	if form {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		d.t.Fatalf("%s: unexpected answer %d %s", path, resp.StatusCode, text)
	}
}

func (d *database) query(text string) {
	d.t.Helper()
	d.request("/query", url.Values{"q": {text}}.Encode(), true)
}

func (d *database) write(lines ...string) {
	d.t.Helper()
	d.request("/write?db=krake", strings.Join(lines, "\n"), false)
}

func (d *database) provider() *api.MetricsProvider {
	p := &api.MetricsProvider{Metadata: api.Metadata{Name: "influx"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderInflux, Influx: &api.InfluxSpec{URL: d.url, Token: api.NewSecret("krake:pw:x"), Org: "any", Bucket: "krake/autogen"},
	}}
	p.SetDefaults()
	return p
}

// TestRealInfluxDB runs the same queries in both languages and expects the same results.
func TestRealInfluxDB(t *testing.T) {
	for _, language := range []string{"Flux", "InfluxQL"} {
		t.Run(language, func(t *testing.T) {
			d := startDatabase(t, language == "Flux")
			old := time.Now().Add(-2 * time.Hour).UnixNano()
			hostile := `a"b\c ${1} 'd' ; DROP`
			d.write(
				`one value=2.5`,
				`heat_demand,zone=b value=7`, `heat_demand,zone=a value=42.5`, `heat_demand,zone=a,building=9 value=5`,
				`fields b=2,a=1`,
				`integer value=3i`, `negative value=-7`, `big value=1e308`,
				`text value="12"`, `truth value=true`, `mixed state="ok",value=4`,
				fmt.Sprintf("stale value=1 %d", old), fmt.Sprintf("moved value=1 %d", old), "moved value=2",
				`heat.demand value=8`, `heat\ demand,a\ tag=x\,y value=9`,
				fmt.Sprintf(`%s,zone=%s value=10`, lineName(hostile), lineName(hostile)),
			)
			src, err := open(d.provider(), addresspolicy.OnLoopback(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			want := map[string]any{
				"one": 2.5, "one.value": 2.5,
				// The first in the order of tags: building before zone.
				"heat_demand": 5.0, `heat_demand{zone="a"}`: 5.0, `heat_demand{zone="b"}`: 7.0, `heat_demand.value{zone="a", building="9"}`: 5.0,
				"fields": 1.0, "fields.b": 2.0,
				"integer": 3.0, "negative": -7.0, "big": 1e308, "mixed.value": 4.0, "moved": 2.0,
				`"heat.demand"`: 8.0, `heat demand{a tag="x,y"}`: 9.0,
				quoteText(hostile): 10.0, quoteText(hostile) + "{zone=" + quoteText(hostile) + "}": 10.0,
				"text": "is a text", "truth": "the boolean true", "mixed": "mixed.state is a text", "stale": "no value in the last hour",
				"heat.demand": "must be in quotes", "absent": `measurement "absent"`, "one.absent": `field "absent"`, `one{zone="a"}`: `tag zone="a"`,
				`x" or r._measurement != "`: "not a measurement", `one{zone="`: "not a measurement",
				quoteText(`x" or r._measurement != "`): "no value", quoteText(`x" ; DROP DATABASE krake; SELECT * FROM "`): "no value",
				`one{zone="a' OR 'a'='a"}`: "no value",
			}
			check := func() {
				t.Helper()
				var queries []string
				for query := range want {
					queries = append(queries, query)
				}
				began := time.Now()
				readings, err := src.Read(t.Context(), queries)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d queries in %s", len(queries), time.Since(began))
				for query, want := range want {
					got := readings[query]
					switch want := want.(type) {
					case float64:
						if got.Err != nil || got.Value != want {
							t.Errorf("%s: got %+v, want %v", query, got, want)
						}
					case string:
						if got.Err == nil || !strings.Contains(got.Err.Error(), want) {
							t.Errorf("%s: got %+v, want an error with %q", query, got, want)
						}
					}
				}
			}
			check()
			check()
			if src.usesQL != (language == "InfluxQL") {
				t.Errorf("queried in InfluxQL: %v", src.usesQL)
			}
			// No queries, only whether it responds.
			if _, err := src.Read(t.Context(), nil); err != nil {
				t.Error(err)
			}

			// Many in one request.
			var lines, many []string
			for i := range 1000 {
				lines = append(lines, fmt.Sprintf("many_%d value=%d", i, i))
				many = append(many, fmt.Sprintf("many_%d", i))
			}
			d.write(lines...)
			began := time.Now()
			readings, err := src.Read(t.Context(), many)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("1000 queries in %s", time.Since(began))
			for i, query := range many {
				if got := readings[query]; got.Err != nil || got.Value != float64(i) {
					t.Fatalf("%s: got %+v, want %d", query, got, i)
				}
			}

			// An error of the provider is returned for the provider and for every metric.
			for name, c := range map[string]struct {
				change func(*api.MetricsProvider)
				want   string
			}{
				"no token":       {func(p *api.MetricsProvider) { p.Spec.Influx.Token = api.Secret{} }, "status 401"},
				"wrong password": {func(p *api.MetricsProvider) { p.Spec.Influx.Token = api.NewSecret("krake:no") }, "status 401"},
				"no database":    {func(p *api.MetricsProvider) { p.Spec.Influx.Bucket = "nope/autogen" }, "database"},
				"no policy":      {func(p *api.MetricsProvider) { p.Spec.Influx.Bucket = "krake/nope" }, "retention policy"},
			} {
				p := d.provider()
				c.change(p)
				broken, err := open(p, addresspolicy.OnLoopback(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, queries := range [][]string{nil, {"one"}, {"one", "heat_demand"}} {
					readings, err := broken.Read(t.Context(), queries)
					if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "krake:") {
						t.Errorf("%s, %d queries: got %v, want %q", name, len(queries), err, c.want)
					}
					for _, query := range queries {
						if got := readings[query].Err; got == nil || got.Error() != err.Error() {
							t.Errorf("%s: metric %s got %v", name, query, got)
						}
					}
				}
				broken.Close()
			}

			// Stopped and started again.
			d.stop()
			eventually.True(t, "the stopped server refuses connections", func() bool { // each open connection ends first
				_, err := src.Read(t.Context(), []string{"one"})
				if err == nil {
					t.Fatal("the stopped server still answers")
				}
				return strings.Contains(err.Error(), "refused")
			})
			d.start()
			check()
		})
	}
}

// TestServerThatGetsFlux checks that the language is chosen again after a failure.
func TestServerThatGetsFlux(t *testing.T) {
	d := startDatabase(t, false)
	d.write("one value=1")
	src, err := open(d.provider(), addresspolicy.OnLoopback(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	read := func() (source.Reading, error) {
		readings, err := src.Read(t.Context(), []string{"one"})
		return readings["one"], err
	}
	if got, err := read(); err != nil || got.Value != 1 || !src.usesQL {
		t.Fatalf("got %+v, %v", got, err)
	}
	d.stop()
	if _, err := read(); err == nil {
		t.Error("the stopped server still answers")
	}
	config, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.config, []byte(strings.Replace(string(config), "flux-enabled = false", "flux-enabled = true", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	if got, err := read(); err != nil || got.Value != 1 || src.usesQL {
		t.Fatalf("got %+v, %v, InfluxQL %v", got, err, src.usesQL)
	}
}

// lineName escapes a measurement, tag or tag value for the line protocol.
func lineName(name string) string {
	return strings.NewReplacer(",", `\,`, " ", `\ `, "=", `\=`).Replace(name)
}
