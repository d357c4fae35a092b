package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	os.Exit(servertest.Run(m))
}

// fleet is a server with objects, and the environment of command lines that use it.
type fleet struct {
	t        *testing.T
	endpoint string
	server   *client.Client
	env      Environment
	stdout   *logtest.Buffer
	stderr   *logtest.Buffer
	vars     map[string]string
}

// program is the name of the program in the tests.
const program = "scheduler-server"

// afterwards makes every age the same.
func afterwards() time.Time { return time.Now().AddDate(200, 0, 0) }

// TestCommands runs command lines against one server. Each part has objects of its own, except
// for the first one, which shows what newFleet creates, and the last one, after whose first step the
// server requires tokens.
func TestCommands(t *testing.T) {
	f := newFleet(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *fleet)
	}{
		{"GoldenFiles", testGoldenFiles},
		{"WatchShowsMoves", testWatchShowsMoves},
		{"GetWatchContinuesTheTable", testGetWatchContinuesTheTable},
		{"GetWatchByField", testGetWatchByField},
		{"WatchContinues", testWatchContinues},
		{"WatchListsWhatItMissed", testWatchListsWhatItMissed},
		{"Documents", testDocuments},
		{"FilesKeepSecrets", testFilesKeepSecrets},
		{"FilesOfGet", testFilesOfGet},
		{"ApplyStopsWithoutServer", testApplyStopsWithoutServer},
		{"DrainAsks", testDrainAsks},
		{"DrainInterrupted", testDrainInterrupted},
		{"Terminal", testTerminal},
		{"HostileTextIsEscaped", testHostileTextIsEscaped},
		{"Completion", testCompletion},
		{"Contexts", testContexts},
		{"Tokens", testTokens},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, f.in(t)) })
	}
}

// newFleet starts a server with three clusters in Europe, one elsewhere that is tainted, two
// placements and a workload.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := newServer(t)
	f.put("/v1/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"load":0.25,"price":3}}}}`)
	f.put("/v1/metrics/load", `{"spec":{"min":0,"max":1,"direction":"descending","metrics_provider":{"name":"table","metric":"load"}}}`)
	f.put("/v1/metrics/price", `{"spec":{"min":0,"max":4,"direction":"descending","metrics_provider":{"name":"table","metric":"price"}}}`)
	for i, metrics := range []string{`[{"name":"load","weight":2},{"name":"price"}]`, `[{"name":"load"}]`, `[{"name":"price"}]`} {
		f.put(fmt.Sprintf("/v1/clusters/eu-%d", i+1), fmt.Sprintf(`{"metadata":{"labels":{"region":"eu"}},"spec":{"region":"eu","description":"number %d",
			"allocatable":{"cpu":"10","memory":"64Gi"},"allocated":{"cpu":"%d","memory":"8Gi"},"metrics":%s}}`, i+1, i+1, metrics))
	}
	for _, name := range []string{"load", "price"} { // before anything is decided, so that causes are the same each time
		eventually.True(t, "metric "+name+" is read", func() bool {
			metric, err := f.server.Get(t.Context(), api.Key{Kind: api.KindMetric, Name: name})
			if err != nil {
				t.Fatal(err)
			}
			available := conditionOf(metric, api.ConditionAvailable)
			return available != nil && available.Status == api.ConditionTrue
		})
	}
	f.put("/v1/clusters/us-1", `{"metadata":{"labels":{"region":"us"}},"spec":{"region":"us","taints":[{"key":"maintenance","value":"disks","effect":"NoSelect"}]}}`)
	f.put("/v1/namespaces/shop/placements/web", `{"metadata":{"labels":{"tier":"front"}},"spec":{"number_of_clusters":2,"label_constraints":["region is eu"]}}`)
	f.put("/v1/namespaces/shop/placements/db", `{"spec":{"number_of_clusters":5}}`)
	f.put("/v1/namespaces/shop/propagation-policies/all", `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],
		"placement":{"replica_scheduling":{"type":"Divided","division_preference":"Weighted"}},"failover":{"cluster":{"purge_mode":"Directly"}}}}`)
	f.put("/v1/namespaces/shop/workloads/api", `{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":6,"replica_requests":{"cpu":"500m"}}}`)
	f.decided("placement", "web", "eu-1", "eu-2")
	f.decided("placement", "db", "eu-1", "eu-2", "eu-3")
	f.decided("workload", "api", "eu-1=2", "eu-2=2", "eu-3=2")
	return f
}

// newServer starts a server with nothing on it.
func newServer(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, endpoint: servertest.Start(t)}
	var err error
	if f.server, err = client.New(client.Options{Endpoint: f.endpoint}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.server.Close)
	return f.in(t)
}

// in returns the fleet for a part of the test, with an environment of its own.
func (f *fleet) in(t *testing.T) *fleet {
	own := &fleet{t: t, endpoint: f.endpoint, server: f.server, stdout: &logtest.Buffer{}, stderr: &logtest.Buffer{}}
	own.vars = map[string]string{endpointVariable: f.endpoint, "SCHEDULER_NAMESPACE": "shop", "HOME": t.TempDir()}
	own.env = environment(t, own.vars)
	own.env.Stdout, own.env.Stderr = own.stdout, own.stderr
	return own
}

// environment returns one without input, output and configuration.
func environment(t *testing.T, vars map[string]string) Environment {
	return Environment{
		Program: program, Version: "1.2.3", Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Getenv: func(name string) string { return vars[name] }, ConfigFile: filepath.Join(t.TempDir(), "config", "config.yaml"), Now: afterwards,
	}
}

func (f *fleet) put(path, body string) {
	f.t.Helper()
	if err := f.server.Call(f.t.Context(), http.MethodPut, path, jsonText(body), nil); err != nil {
		f.t.Fatalf("%s: %v", path, err)
	}
}

// decided waits until an object in namespace shop is on clusters.
func (f *fleet) decided(kind api.Kind, name string, clusters ...string) {
	f.t.Helper()
	eventually.True(f.t, fmt.Sprintf("%s %s is on %s", kind, name, clusters), func() bool {
		object, err := f.server.Get(f.t.Context(), api.Key{Kind: kind, Namespace: "shop", Name: name})
		if err != nil {
			f.t.Fatal(err)
		}
		at, _ := clustersOf(object)
		return slices.Equal(at, clusters)
	})
}

// jsonText is a document that is sent as it is.
type jsonText string

// MarshalJSON implements json.Marshaler.
func (j jsonText) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// run runs a command line.
func (f *fleet) run(args ...string) (code int, stdout, stderr string) {
	f.t.Helper()
	return run(f.t, f.env, args...)
}

// run runs a command line in an environment.
func run(t *testing.T, env Environment, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env.Stdout, env.Stderr = &out, &errs
	code = execute(t.Context(), env, args)
	return code, out.String(), errs.String()
}

// execute runs a command line as the server's program does.
func execute(ctx context.Context, env Environment, args []string) int {
	root := &cobra.Command{Use: env.Program, SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(Commands(env)...)
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(env.Stderr, env.Program+":", termtext.Lines(api.Redact(err.Error())))
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Code
	}
	return -1
}

// must runs a command line that succeeds.
func (f *fleet) must(args ...string) string {
	f.t.Helper()
	code, stdout, stderr := f.run(args...)
	if code != exitOK {
		f.t.Fatalf("%s: exit code %d: %s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

var (
	moments   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	revisions = regexp.MustCompile(`(resource_version"?: )"\d+"`)
	uids      = regexp.MustCompile(`(uid"?: "?)[0-9a-f]{32}`)
	decisions = regexp.MustCompile(`(decision_revision"?: )\d+`)
	entries   = regexp.MustCompile(`(TIME +)\d+( +(?:placement|workload) )|("revision": )\d+`)
	requests  = regexp.MustCompile(`(request_id"?: "?)[0-9a-f]{16}`)
)

// stable replaces what differs between runs.
func (f *fleet) stable(text string) string {
	text = strings.ReplaceAll(text, f.endpoint, "SERVER")
	text = moments.ReplaceAllString(text, "TIME")
	text = decisions.ReplaceAllString(text, "${1}REVISION")
	text = requests.ReplaceAllString(text, "${1}REQUEST")
	text = entries.ReplaceAllString(text, "${1}${3}N$2")
	text = revisions.ReplaceAllString(text, `${1}"REVISION"`)
	return uids.ReplaceAllString(text, "${1}UID")
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != text {
		t.Errorf("%s differs (%v): look at the difference after go test ./internal/cli -update\n%s", path, err, text)
	}
}

// testGoldenFiles compares what each command prints with a golden file.
func testGoldenFiles(t *testing.T, f *fleet) {
	file := filepath.Join(t.TempDir(), "change.yaml")
	if err := os.WriteFile(file, []byte("objects:\n  - kind: cluster\n    metadata: {name: eu-0, labels: {region: eu}}\n    spec: {metrics: [{name: load}]}\ndelete:\n  - {kind: cluster, name: eu-1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.put("/v1/namespaces/gone/placements/web", `{"spec":{"cluster_names":["nowhere"]}}`)
	eventually.True(t, "the history has the last decision", func() bool { return strings.Contains(f.must("history", "-A"), "shop/api") })
	for _, test := range []struct {
		name, args string
		code       int
	}{
		{"help", "get --help", 0},
		{"get-clusters", "get clusters", 0},
		{"get-clusters-wide", "get clusters -o wide", 0},
		{"get-selected", "get cluster -l region=us", 0},
		{"get-by-field", "get clusters --field spec.region=eu,metadata.name!=eu-2", 0},
		{"get-by-field-and-label", "get placements -A --field status.conditions.Satisfied=False -l tier!=front", 0},
		{"get-by-field-of-a-list", "get placements --field status.clusters=eu-3 -o name", 0},
		{"get-by-field-nothing", "get clusters --field spec.paused=true", 0},
		{"get-by-unknown-field", "get metrics --field spec.maximum=1", ExitUsage},
		{"get-names-and-field", "get placement web --field metadata.name=web", ExitUsage},
		{"get-placements", "get placements", 0},
		{"get-everywhere", "get placements -A", 0},
		{"get-workloads", "get workloads -o wide", 0},
		{"get-metrics", "get metrics", 0},
		{"get-metrics-in-namespace", "get metrics -n elsewhere", 0},
		{"get-providers", "get metrics_providers", 0},
		{"get-policies", "get propagation-policies", 0},
		{"get-names", "get placement web shop/db -o name", 0},
		{"get-yaml", "get placement web -o yaml", 0},
		{"get-json", "get placements -l tier=front -o json", 0},
		{"get-jsonpath", "get placement web -o jsonpath={.metadata.name}{'\\n'}{.spec.number_of_clusters}{'\\n'}{.spec.nothing}", 0},
		{"get-jsonpath-list", "get clusters -o jsonpath={range.items[*]}{.metadata.name}{'\\n'}{end}", 0},
		{"get-jsonpath-path", "get cluster eu-1 -o jsonpath=.spec.allocatable.memory", 0},
		{"get-jsonpath-wrong", "get clusters -o jsonpath={.metadata", ExitUsage},
		{"get-jsonpath-empty", "get clusters -o jsonpath=", ExitUsage},
		{"explain-jsonpath", "explain placement web -o jsonpath={.candidates[*].cluster}", 0},
		{"get-nothing", "get clouds", 0},
		{"get-missing", "get placement web nope", exitNotFound},
		{"get-unknown-kind", "get pods", ExitUsage},
		{"get-unknown-output", "get clusters -o xml", ExitUsage},
		{"get-names-and-selector", "get placement web -l a=b", ExitUsage},
		{"get-wrong-selector", "get placements -l ((", ExitUsage},
		{"get-global-in-namespace", "get cluster shop/eu-1", ExitUsage},
		{"get-score-without-cluster", "get placement-score a", ExitUsage},
		{"no-kind", "get", ExitUsage},
		{"unknown-flag", "get clusters --nope", ExitUsage},
		{"describe-placement", "describe placement web", 0},
		{"describe-cluster", "describe cluster us-1", 0},
		{"describe-metric", "describe metric load", 0},
		{"explain-placement", "explain placement db", 0},
		{"explain-workload", "explain workload api", 0},
		{"explain-json", "explain placement web -o json", 0},
		{"explain-metric", "explain metric load", ExitUsage},
		{"explain-at-what", "explain placement web --at yesterday", exitRefused},
		{"explain-why-not-chosen", "explain placement web --why-not eu-1", 0},
		{"explain-why-not-worse", "explain placement web --why-not eu-3", 0},
		{"explain-why-not-rejected", "explain placement web --why-not us-1", 0},
		{"explain-why-not-unknown", "explain placement web --why-not mars", ExitUsage},
		{"explain-why-not-json", "explain placement web --why-not eu-3 -o json", ExitUsage},
		{"history", "history", 0},
		{"history-of-one", "history placement web", 0},
		{"history-of-cluster", "history workloads --cluster eu-1 --since 2026-01-01T00:00:00Z --until 0s -o json", 0},
		{"history-limited", "history -A --limit 1", 0},
		{"history-of-nothing", "history placement nope", 0},
		{"history-of-clusters", "history clusters", ExitUsage},
		{"history-since", "history --since yesterday", ExitUsage},
		{"delete", "delete pl gone/web", 0},
		{"delete-missing", "delete placement gone/web", exitNotFound},
		{"top", "top clusters", 0},
		{"top-limited", "top clusters --resources memory --limit 2 -l region=eu", 0},
		{"simulate-without", "simulate --without eu-1", 0},
		{"simulate-taint", "simulate --taint eu-1=maintenance:NoSelect --exit-code", exitChanges},
		{"simulate-file", "simulate -f " + file, 0},
		{"simulate-nothing", "simulate", ExitUsage},
		{"simulate-empty-input", "simulate -f -", ExitUsage},
		{"simulate-no-change", "simulate --without us-1 --exit-code", 0},
		{"drain-dry-run", "drain eu-1 --dry-run", 0},
		{"drain-output", "drain eu-1 -o json", ExitUsage},
		{"drain-timeout-dry-run", "drain eu-1 --dry-run --timeout 10m", ExitUsage},
		{"drain-timeout-negative", "drain eu-1 --yes --timeout -10m", ExitUsage},
		{"cordon", "cordon eu-1 eu-2", 0},
		{"drain-unasked", "drain eu-1", ExitUsage},
		{"drain-missing", "drain nowhere --yes", exitNotFound},
		{"drain", "drain eu-1 --yes", 0},
		{"drain-again", "drain eu-1 --yes", 0},
		{"uncordon", "uncordon eu-1 eu-2", 0},
		{"taint", "taint eu-3 maintenance=disks:NoSelectIfNew slow:PreferNoSelect", 0},
		{"taint-removed", "taint eu-3 maintenance- slow:PreferNoSelect-", 0},
		{"taint-invalid", "taint eu-3 maintenance", ExitUsage},
		{"taint-unknown-effect", "taint eu-3 maintenance:Sometimes", exitRefused},
		{"reschedule", "reschedule placement web", 0},
		{"reschedule-cluster", "reschedule cluster eu-1", ExitUsage},
		{"unknown-context", "get clusters --context nope", ExitUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := f.run(strings.Fields(test.args)...)
			if test.name == "drain" { // what follows shows where things are then
				f.decided("placement", "web", "eu-2", "eu-3")
			}
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			golden(t, test.name, f.stable(strings.ReplaceAll("$ "+program+" "+test.args+"\n"+stdout+stderr, file, "FILE")))
		})
	}
}

// TestEveryKindHasATable shows an object of each kind in every form.
func TestEveryKindHasATable(t *testing.T) {
	for _, info := range api.Kinds {
		if len(columns[info.Kind]) == 0 {
			t.Errorf("%s has no columns", info.Kind)
		}
		object := info.New()
		object.Meta().Name = "thing"
		for _, isWide := range []bool{false, true} {
			all := tableOf(info, true, isWide)
			cells := row(all, object, afterwards())
			if !slices.Contains(cells, "thing") || len(cells) != len(all) {
				t.Errorf("%s: %q", info.Kind, cells)
			}
		}
		for _, name := range []string{info.Collection, string(info.Kind), singular(info), shortNames[info.Kind]} {
			if parsed, err := parseKind(name); err != nil || parsed.Kind != info.Kind {
				t.Errorf("%q is read as %s (%v), want %s", name, parsed.Kind, err, info.Kind)
			}
		}
	}
	if len(columns) != len(api.Kinds) {
		t.Errorf("there are columns for %d kinds of %d", len(columns), len(api.Kinds))
	}
}

// TestHelpOfEveryCommand: each command says what it does.
func TestHelpOfEveryCommand(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Args == nil && !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil {
			t.Errorf("%s accepts any arguments", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	for _, command := range Commands(environment(t, nil)) {
		visit(command)
	}
}

// follow runs a command that goes on until it is interrupted.
func (f *fleet) follow(args ...string) (stop func() int) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, f.env, args) }()
	return sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
}

func testWatchShowsMoves(t *testing.T, f *fleet) {
	f.put("/v1/namespaces/moves/placements/old", `{"spec":{"number_of_clusters":2,"label_constraints":["region is eu"]}}`)
	stop := f.follow("watch", "-n", "moves")
	defer stop()
	moves := func() int { return strings.Count(f.stdout.String(), " -> ") }
	// The watch has begun when it shows a change.
	n := 0
	eventually.True(t, "a move is shown", func() bool {
		n++
		f.put("/v1/namespaces/moves/placements/probe", fmt.Sprintf(`{"spec":{"number_of_clusters":%d}}`, 1+n%2))
		return moves() > 0
	})
	f.put("/v1/namespaces/moves/placements/new", `{"spec":{"number_of_clusters":1,"label_constraints":["region is eu"]}}`)
	f.put("/v1/namespaces/moves/placements/new", `{"metadata":{"labels":{"a":"b"}},"spec":{"number_of_clusters":1,"label_constraints":["region is eu"]}}`)
	f.put("/v1/namespaces/moves/placements/new", `{"spec":{"number_of_clusters":1,"label_constraints":["region is us"]}}`)
	if err := f.server.Delete(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "moves", Name: "old"}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the end of a placement is shown", func() bool { return strings.Contains(f.stdout.String(), `"moves/old"`) })
	var about []string
	for line := range strings.Lines(f.stable(f.stdout.String())) {
		if !strings.Contains(line, "probe") {
			about = append(about, line)
		}
	}
	golden(t, "watch", strings.Join(about, ""))
	if code := stop(); code != exitOK {
		t.Errorf("exit code %d: %s", code, f.stderr.String())
	}
}

func testGetWatchContinuesTheTable(t *testing.T, f *fleet) {
	for _, name := range []string{"one", "two", "three"} {
		f.put("/v1/namespaces/tables/placements/"+name, `{"metadata":{"labels":{"in":"table"}},"spec":{"number_of_clusters":1}}`)
	}
	f.put("/v1/namespaces/tables/placements/other", `{"spec":{}}`)
	stop := f.follow("get", "placements", "--watch", "-n", "tables", "-l", "in=table")
	defer stop()
	lines := func() []string { return strings.Split(strings.TrimSpace(f.stdout.String()), "\n") }
	eventually.True(t, "the list is shown", func() bool { return len(lines()) == 4 })
	f.put("/v1/namespaces/tables/placements/one", `{"metadata":{"labels":{"in":"table"}},"spec":{"number_of_clusters":2}}`)
	eventually.True(t, "the change is shown", func() bool { return len(lines()) > 4 })
	f.put("/v1/namespaces/elsewhere/placements/one", `{"metadata":{"labels":{"in":"table"}},"spec":{}}`)
	f.put("/v1/namespaces/tables/placements/other", `{"spec":{"number_of_clusters":1}}`)
	if err := f.server.Delete(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "tables", Name: "two"}); err != nil {
		t.Fatal(err)
	}
	// Without the label, it leaves the table.
	f.put("/v1/namespaces/tables/placements/three", `{"spec":{"number_of_clusters":1}}`)
	eventually.True(t, "both ends are shown", func() bool { return strings.Count(f.stdout.String(), "deleted") == 2 })
	for i, line := range lines() {
		if i > 0 && !slices.Contains([]string{"one", "two", "three"}, strings.Fields(line)[0]) {
			t.Errorf("%q, want only what has the label in the namespace", line)
		}
	}
}

// What no longer has the field leaves the table, and what gets it enters.
func testGetWatchByField(t *testing.T, f *fleet) {
	put := func(name, spec string) { f.put("/v1/namespaces/fields/placements/"+name, `{"spec":`+spec+`}`) }
	put("one", `{"number_of_clusters":1}`)
	put("two", `{"number_of_clusters":2}`)
	stop := f.follow("get", "placements", "--watch", "-n", "fields", "--field", "spec.number_of_clusters=1")
	defer stop()
	eventually.True(t, "the list is shown", func() bool { return f.stdout.Contains("one ") })
	put("one", `{"number_of_clusters":2}`)
	eventually.True(t, "what no longer has it is shown to leave", func() bool { return f.stdout.Contains("deleted") })
	put("three", `{"number_of_clusters":2}`)
	put("two", `{"number_of_clusters":1}`)
	eventually.True(t, "what gets it is shown", func() bool { return f.stdout.Contains("two ") })
	if f.stdout.Contains("three ") {
		t.Errorf("%s\nwant nothing without the field", f.stdout.String())
	}
}

// A watch goes on when its server was away, and shows what changed meanwhile.
func testWatchContinues(t *testing.T, f *fleet) {
	proxy := proxytest.Start(t, strings.TrimPrefix(f.endpoint, "http://"))
	f.vars[endpointVariable] = "http://" + proxy.Address()
	f.put("/v1/namespaces/away/placements/a", `{"spec":{"number_of_clusters":1}}`)
	stop := f.follow("get", "placements", "-n", "away", "-w", "-o", "name")
	shows := func(name string) func() bool {
		return func() bool { return f.stdout.Contains("placement away/" + name + "\n") }
	}
	eventually.True(t, "the list is shown", shows("a"))
	f.put("/v1/namespaces/away/placements/b", `{"spec":{"number_of_clusters":1}}`)
	eventually.True(t, "the change is shown", shows("b"))
	proxy.Down(t)
	f.put("/v1/namespaces/away/placements/c", `{"spec":{"number_of_clusters":1}}`)
	eventually.True(t, "it is said that the server is away", func() bool { return f.stderr.Contains("trying again") })
	proxy.Up(t)
	eventually.True(t, "the change meanwhile is shown", shows("c"))
	if code := stop(); code != exitOK {
		t.Errorf("exit code %d: %s", code, f.stderr.String())
	}
}

// When the server no longer knows the changes, a watch lists the objects again.
func testWatchListsWhatItMissed(t *testing.T, f *fleet) {
	put := func(name, spec string) { f.put("/v1/namespaces/missed/placements/"+name, `{"spec":`+spec+`}`) }
	for _, name := range []string{"changed", "gone", "same"} {
		put(name, `{"number_of_clusters":1}`)
	}
	info, _ := api.LookupKind(api.KindPlacement)
	list := &following{server: f.server, kinds: []api.KindInfo{info}, namespace: "missed", stderr: f.stderr}
	if err := list.list(t.Context(), func(api.Object) {}); err != nil {
		t.Fatal(err)
	}
	put("changed", `{"number_of_clusters":2}`)
	put("new", `{"number_of_clusters":1}`)
	if err := f.server.Delete(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "missed", Name: "gone"}); err != nil {
		t.Fatal(err)
	}
	list.from = "1" // before the server started
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	err := list.follow(ctx, func(e api.Event) error {
		if got = append(got, string(e.Type)+" "+e.Object.Meta().Name); len(got) == 3 {
			cancel()
		}
		return nil
	})
	if want := []string{"put changed", "put new", "delete gone"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q (%v), want %q", got, err, want)
	}
}

// Several documents are a stream that programs can read.
func testDocuments(t *testing.T, f *fleet) {
	if out := f.must("explain", "placement", "web", "db", "-o", "yaml"); strings.Count(out, "\n---\n") != 1 {
		t.Errorf("%s\nwant two YAML documents", out)
	}
	decoder := json.NewDecoder(strings.NewReader(f.must("explain", "placement", "web", "db", "-o", "json")))
	for range 2 {
		var x api.Explanation
		if err := decoder.Decode(&x); err != nil || x.Summary == "" {
			t.Errorf("%+v, %v", x, err)
		}
	}
}

// Without a server, a command says so, and its exit code does.
func TestWithoutServer(t *testing.T) {
	file := writeFile(t, "fleet.yaml", "kind: cluster\nmetadata: {name: a}\n")
	for _, args := range []string{"get placements", "watch", "cordon a", "drain a --yes", "apply -f " + file, "diff -f " + file} {
		code, _, stderr := run(t, environment(t, nil), append(strings.Fields(args), "--endpoint", "http://127.0.0.1:1")...)
		if code != exitNoServer || !strings.Contains(stderr, "http://127.0.0.1:1") || !strings.Contains(stderr, "connection refused") {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
}

// TestPatience reads the variables that the provider has, too.
func TestPatience(t *testing.T) {
	for _, test := range []struct {
		retries, timeout string
		wantRetries      int
		wantTimeout      time.Duration
		wrong            string
	}{
		{"", "", defaultRetries, 0, ""},
		{"5", "1m", 5, time.Minute, ""},
		{"0", "", -1, 0, ""},
		{"many", "", 0, 0, `SCHEDULER_MAX_RETRIES: "many" is not a number of retries`},
		{"", "0s", 0, 0, `SCHEDULER_REQUEST_TIMEOUT: "0s" is not a duration`},
	} {
		retries, timeout, err := patience(environment(t, map[string]string{retriesVariable: test.retries, timeoutVariable: test.timeout}))
		if retries != test.wantRetries || timeout != test.wantTimeout || (err == nil) != (test.wrong == "") || err != nil && (exitCode(err) != ExitUsage || !strings.HasPrefix(err.Error(), test.wrong)) {
			t.Errorf("%q, %q: %d, %s, %v", test.retries, test.timeout, retries, timeout, err)
		}
	}
}

// Without a home directory, there is no configuration, and none is made in the working directory.
func TestWithoutHome(t *testing.T) {
	env := environment(t, nil)
	env.ConfigFile = ""
	if code, _, stderr := run(t, env, "context", "add", "prod"); code != ExitUsage || !strings.Contains(stderr, "--config") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr := run(t, env, "context", "list"); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestPrecedence: flags, then a context that is named, then variables, then the current context; and
// no other server gets what belongs to a context.
func TestPrecedence(t *testing.T) {
	config := "current: prod\ncontexts:\n" +
		"  prod: {endpoints: [http://prod], namespace: shop, token_file: /prod/token, client_cert_file: /prod/cert}\n" +
		"  test: {endpoints: [http://test-a, http://test-b]}\n"
	for name, test := range map[string]struct {
		vars map[string]string
		args connection
		want string // endpoints, namespace, token file, client certificate
	}{
		"current context":             {want: "http://prod shop /prod/token /prod/cert"},
		"variable":                    {vars: map[string]string{"SCHEDULER_ENDPOINT": "http://here"}, want: "http://here shop  "},
		"variables":                   {vars: map[string]string{"SCHEDULER_ENDPOINTS": "http://a, http://b"}, want: "http://a,http://b shop  "},
		"variable of a file":          {vars: map[string]string{"SCHEDULER_TOKEN_FILE": "/my/token"}, want: "http://prod shop /my/token /prod/cert"},
		"named context":               {vars: map[string]string{"SCHEDULER_ENDPOINT": "http://here", "SCHEDULER_NAMESPACE": "here"}, args: connection{contextFlag: "prod"}, want: "http://prod shop /prod/token /prod/cert"},
		"context named by a variable": {vars: map[string]string{"SCHEDULER_ENDPOINT": "http://here", contextVariable: "prod"}, want: "http://prod shop /prod/token /prod/cert"},
		"variable for what is not in the named context": {vars: map[string]string{"SCHEDULER_NAMESPACE": "here"}, args: connection{contextFlag: "test"}, want: "http://test-a,http://test-b here  "},
		"flag":                     {args: connection{given: connectionSettings{Endpoints: []string{"http://here"}}}, want: "http://here shop  "},
		"flag, one of the context": {args: connection{given: connectionSettings{Endpoints: []string{"http://prod"}}}, want: "http://prod shop /prod/token /prod/cert"},
		"flag and named context":   {args: connection{contextFlag: "prod", given: connectionSettings{Endpoints: []string{"http://here"}, Namespace: "given"}}, want: "http://here given  "},
	} {
		t.Run(name, func(t *testing.T) {
			env := environment(t, test.vars)
			c := test.args
			c.configFile = filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(c.configFile, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.load(env); err != nil {
				t.Fatal(err)
			}
			got := strings.Join([]string{strings.Join(c.used.Endpoints, ","), c.used.Namespace, c.used.TokenFile, c.used.ClientCertFile}, " ")
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func testContexts(t *testing.T, f *fleet) {
	delete(f.vars, endpointVariable)
	delete(f.vars, "SCHEDULER_NAMESPACE")
	f.must("context", "add", "test", "--endpoint", "https://a.test,https://b.test", "--namespace", "shop")
	f.must("context", "add", "nowhere", "--endpoint", "http://127.0.0.1:1")
	golden(t, "context-list", f.must("context", "list"))
	f.must("context", "delete", "test")
	f.must("context", "add", "prod", "--endpoint", f.endpoint, "--namespace", "shop")
	if out := f.must("get", "placement", "web", "-o", "name"); out != "placement shop/web\n" {
		t.Errorf("%q", out)
	}
	if code, _, _ := f.run("get", "placements", "--context", "nowhere"); code != exitNoServer {
		t.Errorf("exit code %d", code)
	}
	f.must("context", "use", "nowhere")
	if code, _, _ := f.run("get", "placements"); code != exitNoServer {
		t.Errorf("exit code %d", code)
	}
	f.vars[contextVariable] = "prod"
	f.must("get", "placement", "web")
	f.must("context", "delete", "nowhere")
	if code, _, stderr := f.run("context", "use", "nowhere"); code != ExitUsage || !strings.Contains(stderr, "prod") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if info, err := os.Stat(f.env.ConfigFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info.Mode(), err)
	}
	if err := os.WriteFile(f.env.ConfigFile, []byte("contexts: {prod: {endpoint: x}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := f.run("get", "placements"); code != exitRefused || !strings.Contains(stderr, `unknown field "endpoint"`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Tokens come from the file of contexts, a file of their own or a variable, and are never shown.
func testTokens(t *testing.T, f *fleet) {
	var created struct {
		Token string `json:"token"`
	}
	if err := f.server.Call(t.Context(), http.MethodPost, "/v1/tokens", map[string]string{"role": "admin"}, &created); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(client.Options{Endpoint: f.endpoint, Token: api.NewSecret(created.Token)})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.Call(t.Context(), http.MethodPost, "/v1/tokens", map[string]string{"role": "viewer"}, &created); err != nil {
		t.Fatal(err)
	}
	denied := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := f.run(args...)
		if code != exitRefused {
			t.Errorf("exit code %d, want %d: %s%s", code, exitRefused, stdout, stderr)
		}
		return stdout + stderr
	}
	denied("get", "clusters")
	delete(f.vars, endpointVariable)
	f.env.Stdin = strings.NewReader(created.Token + "\n")
	f.must("context", "add", "prod", "--endpoint", f.endpoint, "--token-file", "-")
	f.must("get", "clusters")
	if out := f.must("context", "list"); strings.Contains(out, created.Token) {
		t.Errorf("%q shows the token", out)
	}
	f.vars[endpointVariable] = strings.Replace(f.endpoint, "127.0.0.1", "localhost", 1)
	denied("get", "clusters") // the context's token is not for another address
	delete(f.vars, endpointVariable)
	if said := denied("cordon", "eu-1"); strings.Contains(said, created.Token) || !strings.Contains(said, "role viewer") {
		t.Errorf("%q", said)
	}
	if err := os.Chmod(f.env.ConfigFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if said := denied("get", "clusters"); !strings.Contains(said, "chmod 600") {
		t.Errorf("%q", said)
	}
	if err := os.Chmod(f.env.ConfigFile, 0o600); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(f.vars["HOME"], "token")
	if err := os.WriteFile(path, []byte(created.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.must("get", "clusters", "--token-file", "~/token")
	f.must("context", "add", "prod", "--token-file", "~/token")
	f.must("get", "clusters")
	if data, err := os.ReadFile(f.env.ConfigFile); err != nil || strings.Contains(string(data), created.Token) {
		t.Errorf("%s (%v), want the path of the token in place of the token", data, err)
	}
	f.vars[tokenVariable] = "0123456789abcdef.wrong"
	if said := denied("get", "clusters"); strings.Contains(said, "wrong") {
		t.Errorf("%q shows the token", said)
	}
	f.must("get", "clusters", "--token-file", path)
}

// Text of others cannot control the terminal.
func testHostileTextIsEscaped(t *testing.T, f *fleet) {
	f.vars["SCHEDULER_NAMESPACE"] = "hostile"
	f.put("/v1/clusters/red", `{"spec":{"namespace":"hostile","description":"red\u202e","region":"e\u001bu","taints":[{"key":"a","effect":"NoSelectIfNew"}]}}`)
	f.put("/v1/namespaces/hostile/placements/web", `{"spec":{"cluster_names":["red"]}}`)
	for _, args := range []string{"get clusters -o wide", "describe cluster red", "explain placement web", "get cluster red -o yaml", "get cluster red -o json"} {
		if out := f.must(strings.Fields(args)...); strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("%s: %q", args, out)
		}
	}
}

func testCompletion(t *testing.T, f *fleet) {
	for args, want := range map[string]string{
		"get ":                  "clusters",
		"get placement ":        "web",
		"explain ":              "workloads",
		"cordon ":               "eu-1",
		"drain ":                "eu-1",
		"get cl -o ":            "jsonpath=",
		"describe workload ":    "api",
		"reschedule ":           "placements",
		"context use ":          "",
		"get metrics-provider ": "table",
		"get clusters -o ":      "yaml",
		"explain -o ":           "json",
	} {
		out := f.must(append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if !slices.Contains(strings.Split(out, "\n"), want) && want != "" {
			t.Errorf("%q completes to %q, want %q among them", args, out, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := f.must("completion", shell); !strings.Contains(out, program) {
			t.Errorf("%s: %.100q", shell, out)
		}
	}
}
