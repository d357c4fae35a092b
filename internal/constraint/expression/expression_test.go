package expression

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func mustCompile(t testing.TB, text string) *Expression {
	t.Helper()
	e, err := Compile(text)
	if err != nil {
		t.Fatalf("Compile(%s): %v", text, err)
	}
	return e
}

// TestOpenClusterManagement checks that expressions match the same clusters as in Open Cluster Management. Each case
// comes from its tests, or from a run of it.
func TestOpenClusterManagement(t *testing.T) {
	labels := func(name string, labels map[string]string) *testCluster {
		return &testCluster{name: name, labels: labels}
	}
	scored := func(name, resource, score string, value int64) *testCluster {
		return &testCluster{name: name, labels: map[string]string{"env": "prod"}, scores: map[string][]Score{resource: {{score, value}}}}
	}
	running := func(name, version string) *testCluster {
		return &testCluster{name: name, kubernetesVersion: version}
	}
	for _, tt := range []struct {
		name        string
		expressions []string
		clusters    []*testCluster
		want        []string
	}{
		{"claim", []string{`managedCluster.status.clusterClaims.exists(c, c.name == "cloud" && c.value == "Amazon")`},
			[]*testCluster{{name: "cluster1", claims: map[string]string{"cloud": "Amazon"}}, {name: "cluster2", claims: map[string]string{"cloud": "Google"}}}, []string{"cluster1"}},
		{"label and score", []string{`managedCluster.metadata.labels["env"] == "prod"`, `managedCluster.scores("test-addon").filter(s, s.name == 'test-score').all(e, e.value > 80)`},
			[]*testCluster{scored("cluster1", "test-addon", "test-score", 90), scored("cluster2", "test-addon", "test-score", 70), labels("without scores", map[string]string{"env": "prod"})}, []string{"cluster1"}},
		{"score", []string{`managedCluster.scores("demo").filter(s, s.name == 'demo').all(e, e.value > 80)`},
			[]*testCluster{scored("c1", "demo", "demo", 70), scored("c2", "demo", "demo", 90), scored("c3", "other", "demo", 90)}, []string{"c2"}},
		{"scores without the requested name", []string{`managedCluster.scores("demo").filter(s, s.name == 'demo').all(e, e.value > 80)`},
			[]*testCluster{scored("c1", "demo", "other", 70)}, []string{"c1"}},
		{"other label", []string{`managedCluster.metadata.labels["env"] == "prod"`},
			[]*testCluster{labels("test", map[string]string{"cloud": "Amazon", "env": "dev"})}, nil},
		{"both true", []string{`managedCluster.metadata.labels["env"] == "prod"`, `semver(managedCluster.metadata.labels["version"]).isLessThan(semver("1.31.0"))`},
			[]*testCluster{labels("test", map[string]string{"env": "prod", "version": "1.30.0"})}, []string{"test"}},
		{"one false", []string{`managedCluster.metadata.labels["env"] == "prod"`, `semver(managedCluster.metadata.labels["version"]).isGreaterThan(semver("1.31.0"))`},
			[]*testCluster{labels("test", map[string]string{"env": "prod", "version": "1.30.0"})}, nil},
		{"not a boolean when evaluated", []string{`managedCluster.metadata.name`}, []*testCluster{labels("cluster1", nil)}, nil},
		{"semver", []string{`semver(managedCluster.metadata.labels["version"]).isGreaterThan(semver("1.30.0"))`},
			[]*testCluster{labels("cluster1", map[string]string{"version": "1.31.2"}), labels("cluster2", map[string]string{"version": "1.29.9"})}, []string{"cluster1"}},
		// Documented by Open Cluster Management, but does not compile there.
		{"semver that normalizes", []string{`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("v1.30.0", true))`},
			[]*testCluster{running("cluster1", "v1.31.2"), running("cluster2", "v1.29.9"), labels("unknown", nil)}, []string{"cluster1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range tt.clusters {
				if !slices.ContainsFunc(tt.expressions, func(text string) bool { return !mustCompile(t, text).Match(c) }) {
					got = append(got, c.name)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("true for %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMatch evaluates expressions that are true of a cluster in which every field is set.
func TestMatch(t *testing.T) {
	for _, text := range []string{
		`true`,
		`cluster.metadata.name == "eu-1"`,
		`cluster.metadata.name.startsWith("eu-") && managedCluster.metadata.name.matches("^eu-[0-9]+$")`,
		`cluster.metadata.labels["env"] == "prod" && cluster.metadata.labels.env == "prod"`,
		`managedCluster.metadata.labels.env in ["prod", "stage"]`,
		`managedCluster["metadata"]["labels"]["env"] == "prod"`,
		`"env" in cluster.metadata.labels && !("absent" in managedCluster.metadata.labels)`,
		`has(cluster.metadata.labels.env) && !has(managedCluster.metadata.labels.absent)`,
		`has(cluster.spec.region) && has(cluster.spec.zones) && has(managedCluster.status.version.kubernetes) && has(managedCluster.status.conditions)`,
		`managedCluster.metadata.labels[?"absent"].orValue("none") == "none"`,
		`cluster.spec.claims["cloud"] == "Amazon" && cluster.spec.claims.size() == 2`,
		`cluster.spec.region == "eu-west-1" && cluster.spec.cloud_provider == "aws"`,
		`cluster.spec.zones == ["a", "b"] && "a" in cluster.spec.zones && cluster.spec.zones.size() == 2`,
		`cluster.spec.custom_resources.exists(r, r.endsWith(".example.com"))`,
		`quantity(cluster.spec.allocatable["cpu"]).isLessThan(quantity(cluster.spec.capacity["cpu"]))`,
		`quantity(managedCluster.status.capacity.memory).isGreaterThan(quantity("63Gi"))`,
		`quantity("1").compareTo(quantity("1000m")) == 0 && quantity("1") == quantity("1000m")`,
		`quantity("1").add(quantity("500m")) == quantity("1500m") && quantity("2").sub(1) == quantity("1")`,
		`quantity("2").asInteger() == 2 && quantity("500m").asApproximateFloat() == 0.5 && !quantity("500m").isInteger() && quantity("-1").sign() == -1`,
		`isQuantity("64Gi") && !isQuantity("much") && !isQuantity("1e999999999")`,
		`isSemver("1.2.3") && !isSemver("v1.2") && isSemver("v1.2", true) && isSemver("v01.02", true) && !isSemver("v", true)`,
		`semver("1.2.3").major() == 1 && semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3`,
		`semver("1.2.3-alpha").isLessThan(semver("1.2.3")) && semver("v1.2", true).compareTo(semver("1.2.0")) == 0 && semver("1.2.3") == semver("1.2.3")`,
		`cluster.scores("demo").exists(s, s.name == "cpu" && s.value >= 90)`,
		`cluster.scores("demo").map(s, s.value).sum() == 70 && cluster.scores("demo").map(s, s.value).max() == 90 && cluster.scores("demo").map(s, s.value).min() == -20`,
		`cluster.scores("demo").map(s, s.value) == [90, -20] && managedCluster.scores("demo")[0]["value"] == 90 && managedCluster.scores("demo")[1].value == -20`,
		`cluster.scores("empty").all(s, s.value > 0) && cluster.scores("empty").size() == 0`,
		`cluster.metric("latency") < 20 && managedCluster.metric("latency") == 12.5`,
		`parseJSON(cluster.metadata.labels.json).b[1] == 2 && cluster.metadata.labels.json.parseJSON().a == "x"`,
		`parseJSON(cluster.metadata.labels.json).map(k, k) == ["a", "b"]`,
		`cluster.metadata.labels.map(k, k) == ["cloud", "env", "json", "version"]`,
		`{"b": 1, "a": 2}.map(k, k) == ["a", "b"]`,
		`managedCluster.status.clusterClaims.map(c, c.name) == ["cloud", "kubeversion.open-cluster-management.io"]`,
		`managedCluster.status.clusterClaims[0] == {"name": "cloud", "value": "Amazon"}`,
		`managedCluster.map(k, k) == ["metadata", "spec", "status"] && managedCluster.size() == 3`,
		`cluster == cluster && managedCluster.metadata == managedCluster.metadata && cluster.metadata.labels == managedCluster.metadata.labels`,
		`cluster.metadata.name.find("[0-9]+") == "1" && "a1b2".findAll("[0-9]") == ["1", "2"] && "a1b2".findAll("[0-9]", 1) == ["1"]`,
		`[1, 2, 2].isSorted() && ![2, 1, 3].isSorted() && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1`,
		`[false, true].max() && ![true, false].min()`,
		`"a-b".replace("-", ".") == "a.b" && "a-a-a".replace("a", "b", 2) == "b-b-a" && ["a", "b"].join("-") == "a-b" && "a,b".split(",").join() == "ab"`,
		`sets.contains(cluster.spec.zones, ["a"]) && math.greatest(1, 2) == 2 && [3, 1, 2].sort() == [1, 2, 3]`,
		`cidr("10.0.0.0/8").containsIP(ip("10.1.2.3")) && isIP("10.0.0.1")`,
	} {
		t.Run(text, func(t *testing.T) {
			e := mustCompile(t, text)
			if why := e.Explain(full()); !e.Match(full()) || why != "" {
				t.Errorf("Match() = %t, Explain() = %q, want true", e.Match(full()), why)
			}
			if e.String() != text {
				t.Errorf("String() = %q", e.String())
			}
		})
	}
}

// TestExplain checks that the explanation says why an expression is not true. An expression that fails at run time is
// explained the same way.
func TestExplain(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`cluster.metadata.name == "other"`, `is false`},
		{`cluster.metadata.labels["absent"] == "x"`, `fails at line 1, column 24: no such key: absent`},
		{`managedCluster.metadata.labels["absent"] == "x"`, `fails at line 1, column 31: no such key: absent`},
		{`managedCluster.spec.hubAccepts`, `fails at line 1, column 20: no such key: hubAccepts`},
		{`cluster.scores("absent").all(s, s.value > 0)`, `fails at line 1, column 15 in scores(): the cluster has no valid scores of "absent"`},
		{`cluster.scores("old").all(s, s.value > 0)`, `fails at line 1, column 15 in scores(): the cluster's scores of "old" expired at 2026-01-02T03:04:05Z`},
		{`cluster.metric("absent") > 1.0`, `fails at line 1, column 15 in metric(): the metric "absent" has no value`},
		{`quantity(cluster.metadata.name).isLessThan(quantity("1"))`, `fails at line 1, column 9 in quantity(): "eu-1" is not a quantity: write a number with an optional suffix, such as "4", "1500m" or "64Gi"`},
		{`semver("v1.30").isLessThan(semver("1.31.0"))`, `fails at line 1, column 7 in semver(): "v1.30" is not a semantic version such as "1.30.0"; semver(..., true) also reads "v1.30"`},
		{`parseJSON(cluster.metadata.name).a`, `fails at line 1, column 10 in parseJSON(): "eu-1" is not JSON: invalid character 'e' looking for beginning of value`},
		{`managedCluster.metadata.name`, `gives a string, not true or false`},
		{`managedCluster.status`, `gives a map, not true or false`},
		{`managedCluster.metadata.scores("demo").size() > 0`, `fails at line 1, column 31 in scores(): scores() is a function of cluster and managedCluster, and takes a name`},
		{"true &&\n managedCluster.metadata.nothing == 1", `fails at line 2, column 25: no such key: nothing`},
		{`1 / 0 == 1`, `fails at line 1, column 3: division by zero`},
		{`int("x") == 1`, `fails at line 1, column 4 in int(): type conversion error from 'string' to 'int'`},
		{`{1: true}[1]`, `fails at line 1, column 10: maps that an expression makes have strings as keys, not an int`},
	} {
		t.Run(tt.text, func(t *testing.T) {
			e := mustCompile(t, tt.text)
			if got := e.Explain(full()); got != tt.want {
				t.Errorf("Explain = %q, want %q", got, tt.want)
			}
			if e.Match(full()) {
				t.Error("Match = true")
			}
		})
	}
}

// TestCompileErrors checks that an error gives the position, the problem and what would be right.
func TestCompileErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
	}{
		{"empty", ``, `the CEL expression is not valid at line 1, column 1: mismatched input 'the end'`},
		{"unfinished", `cluster.metadata.name ==`, `the CEL expression is not valid at line 1, column 25: mismatched input 'the end'`},
		{"unknown variable", `invalid.expression`, `the CEL expression is not valid at line 1, column 1: "invalid" is not known: the variables are cluster and managedCluster; text is put in quotes`},
		{"text without quotes", `cluster.metadata.labels["env"] == prod`, `the CEL expression is not valid at line 1, column 35: "prod" is not known: the variables are cluster and managedCluster; text is put in quotes`},
		{"second line", "true &&\n  foo", `the CEL expression is not valid at line 2, column 3: "foo" is not known: the variables are cluster and managedCluster; text is put in quotes`},
		{"misspelt field", `cluster.spec.regoin == "x"`, `the CEL expression is not valid at line 1, column 13: there is no field "regoin"; cluster has metadata (name, labels) and spec (claims, region, zones, cloud_provider, custom_resources, capacity, allocatable)`},
		{"unknown function", `cluster.score("x") > 1`, `the CEL expression is not valid at line 1, column 14: there is no function "score"`},
		{"wrong type", `cluster.metadata.name > 5`, `the CEL expression is not valid at line 1, column 23: ">" cannot be applied to (string, int): the types do not fit`},
		{"wrong type of index", `cluster.metadata.labels[1] == "x"`, `the CEL expression is not valid at line 1, column 24: "[]" cannot be applied to (map(string, string), int): the types do not fit`},
		{"not a boolean", `cluster.metadata.name`, `the CEL expression gives a string; it must give true or false, for example by comparing: ... == "value"`},
		{"invalid pattern", `cluster.metadata.name.matches("(")`, ``},
		{"too long", `"` + strings.Repeat("a", maxText) + `" == ""`, `the CEL expression has 4104 bytes; at most 4096 are allowed`},
		{"too many loops", `[1]` + strings.Repeat(`.map(x, [x])`, 17) + `.size() == 1`, `the CEL expression has 17 loops (all, exists, filter, map); at most 16 are allowed`},
		{"too deep", strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000), `the CEL expression is not valid: expression recursion limit exceeded: 50`},
		{"types too deep", strings.Repeat("[", 200) + strings.Repeat("]", 200) + " == []", `the CEL expression is not valid: expression recursion limit exceeded: 50`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.text)
			if err == nil {
				t.Fatal("Compile() succeeded")
			}
			if tt.want != "" && err.Error() != tt.want {
				t.Errorf("error:\n%s\nwant:\n%s", err, tt.want)
			}
		})
	}
}

// TestBounds checks that an expression that would take a minute, or all memory, is stopped and does not match.
func TestBounds(t *testing.T) {
	doubling := func(start, step string, times int, end string) string {
		return start + strings.Repeat(".map(x, "+step+")", times) + end
	}
	thousand := "lists.range(1000)"
	for _, tt := range []struct{ name, text, want string }{
		{"loops in loops", fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, a + b + c >= 0)))", thousand), "takes too long: it costs more than 1000000"},
		{"text that doubles", doubling(`["xx"]`, `x + x + x`, 16, `.size() == 1`), tooLargeText},
		{"list that doubles", doubling(`[[1]]`, `x + x + x`, 16, `.size() == 1`), tooLargeText},
		{"lists of the same list", doubling(`[[1]]`, `[x, x]`, 16, ` == []`), tooLargeText},
		{"maps of the same map", doubling(`[{"a": {}}]`, `{"a": x, "b": x}`, 16, ` == []`), tooLargeText},
		{"replacements", `"xxxxxxxxxx"` + strings.Repeat(`.replace("x", "xxxxxxxxxx")`, 20) + ` == ""`, tooLargeText},
		{"joined", `lists.range(2000).map(i, "aaaaaaaaaa").join("bbbbbbbbbb") == ""`, tooLargeText},
		{"joined list", `["x", "y"]` + strings.Repeat(`.map(s, ["`+strings.Repeat("a", 10)+`", s, s].join(s))`, 16) + `.size() == 1`, tooLargeText},
		{"quotes of quotes", strings.Repeat("strings.quote(", 20) + `"\""` + strings.Repeat(")", 20) + ` == ""`, tooLargeText},
		{"range", `lists.range(1000000000).size() > 0`, ""},
		{"large exponent", `quantity("1e999999999").isInteger()`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := mustCompile(t, tt.text)
			why := e.Explain(full())
			if why == "" || why == "is false" || e.Match(full()) {
				t.Fatalf("Explain = %q, want a failure", why)
			}
			if !strings.HasSuffix(why, tt.want) {
				t.Errorf("Explain = %q, want %q", why, tt.want)
			}
		})
	}
}

const tooLargeText = ": makes a value that is too large: at most 16384 bytes, or 2048 elements, are allowed, and 1024 within them"

// TestMemo: the same text is compiled once, and a text that fails is not kept.
func TestMemo(t *testing.T) {
	text := `cluster.metadata.name == "memo"`
	if once, again := mustCompile(t, text), mustCompile(t, text); once != again {
		t.Error("the same text was compiled twice")
	}
	for range 2 {
		if _, err := Compile("memo"); err == nil {
			t.Error("Compile() succeeded")
		}
	}
	// When the cache is full, the oldest text is evicted; compiling it again gives the same result.
	first := mustCompile(t, text)
	for i := range maxCompiled {
		mustCompile(t, fmt.Sprintf("%d == 1", i))
	}
	if again := mustCompile(t, text); again == first || !again.Match(&testCluster{name: "memo"}) {
		t.Errorf("same expression: %t, Match() = %t", again == first, again.Match(&testCluster{name: "memo"}))
	}
}

// TestConcurrent compiles and evaluates expressions from many goroutines, each with its own clusters.
func TestConcurrent(t *testing.T) {
	texts := []string{
		`cluster.metadata.name == cluster.metadata.labels["me"]`,
		`managedCluster.status.clusterClaims.all(c, c.value == managedCluster.metadata.name)`,
		`cluster.scores("s").all(s, s.name == cluster.metadata.name)`,
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("c-%d-%d", worker, i)
				c := &testCluster{name: name, labels: map[string]string{"me": name}, claims: map[string]string{"me": name}, scores: map[string][]Score{"s": {{Name: name}}}}
				for _, text := range texts {
					e, err := Compile(text)
					if err != nil {
						t.Errorf("%s: %v", text, err)
						return
					}
					if why := e.Explain(c); why != "" {
						t.Errorf("%s: %s", text, why)
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestCostOfPatterns checks the estimated cost: a pattern costs in proportion to its length and to that of the text, as
// in CEL. Other functions cost in proportion to their constant arguments.
func TestCostOfPatterns(t *testing.T) {
	long, many := strings.Repeat("a", 1000), strings.Repeat("(a|b|c)?", 100)
	for _, text := range []string{
		`lists.range(100).all(i, matches("` + long + `", "` + many + `"))`,
		`lists.range(100).all(i, "` + long + `".find("` + many + `") != "x")`,
		`lists.range(100).all(i, "` + long + `".findAll("` + many + `").size() > 0)`,
		`lists.range(2000).all(i, lists.range(500).all(j, isURL("` + long + `") || true))`,
		`lists.range(2000).all(i, lists.range(500).all(j, format.dns1123Label().validate("` + long + `").hasValue()))`,
	} {
		e := mustCompile(t, text)
		if why := e.Explain(full()); why != errTooLong.Error() {
			t.Errorf("%.60s...: Explain = %q, want %q", text, why, errTooLong)
		}
	}
	for _, text := range []string{
		`lists.range(1000).all(i, managedCluster.metadata.name.matches("^eu-[0-9]+$"))`,
		`lists.range(100).all(i, managedCluster.metadata.name.find("[0-9" + "]+") == "1")`,
		`["1"].all(p, "a1b1".findAll(p) == ["1", "1"] && "a1b1".findAll(p, 1) == ["1"] && matches("a1", p))`,
	} {
		if why := mustCompile(t, text).Explain(full()); why != "" {
			t.Errorf("%s: %s", text, why)
		}
	}
	for text, want := range map[string]string{
		`["("].all(p, "a".matches(p))`:    "fails at line 1, column 25 in matches(): error parsing regexp",
		`[1].all(p, "a".matches(dyn(p)))`: "fails at line 1, column 23 in matches(): no such overload",
	} {
		if why := mustCompile(t, text).Explain(full()); !strings.HasPrefix(why, want) {
			t.Errorf("%s: got %q, want %q", text, why, want)
		}
	}
}
