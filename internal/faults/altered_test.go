//go:build faults

package faults

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// Some faults cannot be injected from outside. They are added to the source when the server is built for these tests
// (go build -overlay): the repository contains no code for them, and the rest of the binary is as released.

const clockVariable = "FAULTS_CLOCK"

// clockSource is a clock whose wall time can be shifted and stopped through a file. As with the system's clock, the
// monotonic part of a time is not affected.
const clockSource = `package faultclock

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"
)

var offset, stuck atomic.Int64

func init() {
	path := os.Getenv("` + clockVariable + `")
	if path == "" {
		return
	}
	look := func() {
		data, _ := os.ReadFile(path)
		text := strings.TrimSpace(string(data))
		if text == "stuck" {
			stuck.CompareAndSwap(0, time.Now().Unix())
			return
		}
		stuck.Store(0)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			offset.Store(n)
		}
	}
	look()
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			look()
		}
	}()
}

// Now is time.Now with shifted wall time.
func Now() time.Time {
	t := time.Now()
	move := offset.Load()
	if at := stuck.Load(); at != 0 {
		move += at - t.Unix()
	}
	*(*uint64)(unsafe.Pointer(&t)) += uint64(move) << 30
	return t
}
`

// altered builds a server with a clock that can be shifted, a placement and a request that cause a panic, and the store
// format of a newer program. It is built once.
var altered = sync.OnceValues(func() (string, error) {
	overlay := map[string]string{"internal/faultclock/clock.go": clockSource}
	replaced := 0
	for _, root := range []string{"server", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/client") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text := string(content)
			if !strings.Contains(text, "time.Now") {
				return nil
			}
			replaced++
			text = strings.ReplaceAll(text, "time.Now", "faultclock.Now")
			head, rest, ok := strings.Cut(text, "\nimport (")
			if !ok {
				return fmt.Errorf("%s has no list of imports", path)
			}
			text = head + "\nimport (\n\tfaultclock \"github.com/scheduler/terraform-provider-scheduler/internal/faultclock\"" + rest + "\nvar _ = time.Now\n"
			overlay[strings.TrimPrefix(path, "../../")] = text
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	if replaced < 10 {
		return "", fmt.Errorf("only %d files ask for the time", replaced)
	}
	for _, change := range []struct{ path, from, to string }{
		{"internal/store/format.go", declarationIn("internal/store/format.go", `const formatVersion = \d+`), "const formatVersion = 1000"},
		{"internal/engine/placement/query.go", declarationIn("internal/engine/placement/query.go", `func Compile\(p \*api\.Placement.*\{\n`), "" +
			"\tif p.Metadata.Labels[\"poison\"] != \"\" {\n\t\tpanic(\"injected by the test\")\n\t}\n"},
		{"internal/httpapi/info.go", "func health(w http.ResponseWriter, _ *http.Request) {", "func health(w http.ResponseWriter, r *http.Request) {\n" +
			"\tif r.URL.Query().Has(\"poison\") {\n\t\tpanic(\"injected by the test\")\n\t}\n"},
	} {
		if strings.HasSuffix(change.from, "{\n") { // keep the function's signature
			change.to = change.from + change.to
		}
		changed, err := replaceIn(overlay, change.path, change.from, change.to)
		if err != nil {
			return "", err
		}
		maps.Copy(overlay, changed)
	}
	return build("scheduler-server-altered", "../../server", overlay)
})

// newAlteredWorld creates a world with the altered server.
func newAlteredWorld(t testing.TB, f *fault, wrap []string, args ...string) *world {
	t.Helper()
	binary, err := altered()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, fault: f, binary: binary, args: args, ledger: newLedger(), seen: newHistory(), random: seeded.Rand(t)}
	t.Cleanup(w.stopWriting)
	w.follow(launch(t, wrap, binary, args...).awaitReady())
	w.fill()
	return w
}

// TestFaultClock moves the server's clock forward and back, and stops it.
func TestFaultClock(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 12)
	file := filepath.Join(t.TempDir(), "clock")
	move := func(text string) {
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	move("0")
	w := newAlteredWorld(t, f, []string{"env", clockVariable + "=" + file}, embedded(dataDir(t))...)
	source := startPrometheus(t)
	const live = groups
	w.rated(live, clustersPerGroup, source, 3)
	w.follows(live, source, 0)
	// A cluster that sends heartbeats, and a placement on it.
	beating := &api.Cluster{
		Metadata: api.Metadata{Name: clusterName(100), Labels: map[string]string{groupLabel: groupOf(clusterName(100))}},
		Spec:     api.ClusterSpec{Health: &api.HealthSpec{Interval: "1s", FailureThreshold: 100}},
	}
	w.mustPut(beating)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var beats sync.WaitGroup
	beats.Go(func() {
		for ctx.Err() == nil {
			_, _ = w.p().client.Heartbeat(ctx, clusterName(100), api.Heartbeat{}) // the next one follows soon
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	defer beats.Wait()
	defer stop()
	online := func() bool {
		object, err := w.p().client.Get(t.Context(), api.KeyOf(beating))
		return err == nil && object.(*api.Cluster).Status.State == api.StateOnline
	}
	eventually.True(t, "the cluster with heartbeats is online", online)
	w.mustPut(placement("beating", groupOf(clusterName(100)), 1, 0))

	revisions := func() string {
		there, err := objects(w.p())
		if err != nil {
			t.Fatal(err)
		}
		var text string
		for _, name := range []string{"live-g3-0", "live-g3-1", "live-g3-2", "beating"} {
			p, ok := there[api.KeyOf(placement(name, "", 1, 0))].(*api.Placement)
			if !ok {
				t.Fatalf("%s does not exist", name)
			}
			text += fmt.Sprintf("%s: %v (%d) ", name, p.Status.Clusters, p.Status.DecisionRevision)
		}
		return text
	}
	for range rounds(1, 10) {
		for _, jump := range []string{"3600", "-3600", "31536000", "-31536000", "stuck", "0"} {
			before := revisions()
			move(jump)
			shown := func() time.Duration {
				info, err := w.p().client.Server(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return time.Until(info.Now)
			}
			first := shown()
			w.startWriting()
			// Longer than the intervals of metrics and heartbeats.
			asked := source.asked.Load()
			eventually.True(t, "the metrics are read again", func() bool { return source.asked.Load() > asked+1 })
			eventually.True(t, "the clock shows another time", func() bool {
				moved := shown()
				return jump == "0" || jump == "stuck" && moved < first-time.Second || jump != "stuck" && (moved > time.Minute || moved < -time.Minute)
			})
			f.happened()
			w.stopWriting()
			if !online() {
				t.Errorf("a jump of %s s takes a cluster offline although it sends heartbeats", jump)
			}
			if after := revisions(); after != before {
				t.Errorf("a jump of %s s changes objects from\n%s\nto\n%s", jump, before, after)
			}
			w.judgeQuickly()
		}
	}
	stop()
	beats.Wait()
	if err := w.p().client.Delete(t.Context(), api.KeyOf(placement("beating", "", 1, 0))); err != nil {
		t.Fatal(err)
	}
	w.judge()
}

// TestFaultPanic makes the work on one object and the response to one request panic.
func TestFaultPanic(t *testing.T) {
	f := begin(t, 26)
	w := newAlteredWorld(t, f, nil, embedded(dataDir(t))...)
	w.startWriting()
	panics := func() int { return strings.Count(w.p().stderr.String(), "injected by the test") }
	for round := range rounds(3, 50) {
		before := panics()
		object := placement(fmt.Sprintf("poisoned-%d", round), "g0", 1, 0)
		object.Metadata.Labels["poison"] = fmt.Sprint(round + 1)
		object.SetDefaults()
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
		_, err := w.p().client.Put(ctx, object, client.PutOptions{Wait: pointer(time.Second)})
		cancel()
		t.Logf("write of the object that causes a panic: %v", err)
		eventually.True(t, "the processing of the object panics", func() bool { return panics() > before || !w.p().alive() })
		f.happened()
		before = panics()
		for range 5 {
			if a, err := w.p().ask("GET", "/healthz?poison", ""); err == nil && a.status != 500 {
				t.Errorf("a request that panics got %d, want 500", a.status)
			}
		}
		eventually.True(t, "the requests panic", func() bool { return panics() > before })
		f.happened()
		w.judgeNothing()
		w.awaitWrites(30)
	}
	w.stopWriting()
	key := api.KeyOf(placement("poisoned-0", "", 1, 0))
	if there, err := w.p().client.Get(t.Context(), key); err != nil {
		t.Errorf("read of the object that causes a panic: %v", err)
	} else {
		said := false
		for _, c := range there.(*api.Placement).Status.Conditions {
			said = said || c.Type == "Faulted" && c.Status == api.ConditionTrue
		}
		if !said {
			t.Errorf("the object that causes a panic has the conditions %+v", there.(*api.Placement).Status.Conditions)
		}
	}
	if n, err := w.p().ask("GET", "/metrics", ""); err != nil || !strings.Contains(n.body, "scheduler_panics_total{") {
		t.Errorf("the metrics do not count panics: %v", err)
	}
	// After a restart, the same object panics.
	w.restart()
	w.judgeNothing()
	for round := range rounds(3, 50) {
		if err := w.p().client.Delete(t.Context(), api.KeyOf(placement(fmt.Sprintf("poisoned-%d", round), "", 1, 0))); err != nil {
			t.Fatal(err)
		}
	}
	w.judge()
}
