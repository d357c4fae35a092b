package expression

import "testing"

// FuzzCompile checks that no text makes the compiler or an evaluation panic or run away, that a match has no
// explanation, and that the result depends only on what the expression declares to read.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`managedCluster.metadata.labels["env"] == "prod"`,
		`managedCluster.scores("demo").filter(s, s.name == 'cpu').all(e, e.value > 80)`,
		`managedCluster.status.clusterClaims.exists(c, c.name == "cloud" && c.value == "Amazon")`,
		`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("v1.30.0", true))`,
		`quantity(cluster.spec.allocatable["cpu"]).isLessThan(quantity("8"))`, `cluster.metric("latency") < 20.0`,
		`parseJSON(cluster.metadata.labels.json).b[1] == 2`, `cluster.metadata.labels.map(k, k).join(",") == ""`,
		`[1, 2].map(x, [x, x]) == [{"a": x}]`, `cluster == managedCluster`, `has(cluster.spec.region) ? true : dyn(1) == 1.0`,
		`"x".matches("("`, `type(cluster) == type(managedCluster.metadata)`, `string(cluster)`, `Cluster{} == cluster`, "\xff", ``,
		`managedCluster.spec.taints.exists(t, t.key == "k1" && t.timeAdded != null)`, `has(managedCluster.metadata.labels.env)`, `!("a" in managedCluster.metadata.labels)`,
		`managedCluster.status.conditions.exists(c, timestamp(c.lastTransitionTime) > timestamp("2026-01-01T00:00:00Z"))`,
		`url("https://example.com/?a=b").getQuery()["a"][0] == "b"`, `isURL("\x00")`, `format.named("uuid").value().validate("x").hasValue()`, `format.byte().validate("").hasValue()`,
		`int("x") == 1 || duration("1h") > duration("1m")`, `string(1) == "1"`,
		`optional.of(cluster).hasValue()`, `[cluster, managedCluster].size() == 2`, `cluster.metadata.labels["env"] == "prod"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text)
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%q: empty error message", text)
			}
			return
		}
		for _, c := range []*testCluster{full(), managed(), {}} {
			match, why := e.Match(c), e.Explain(c)
			if match != (why == "") {
				t.Fatalf("%q: match %t, explanation %q", text, match, why)
			}
			labels, claims, only := e.Keys()
			if !only {
				continue
			}
			less := &testCluster{labels: map[string]string{}, claims: map[string]string{}}
			keep(less.labels, c.labels, labels)
			keep(less.claims, c.claims, claims)
			if e.Match(less) != match {
				t.Fatalf("%q: match %t with all labels and claims, but not with only labels %q and claims %q", text, match, labels, claims)
			}
		}
	})
}

// keep copies some entries. `managedCluster` treats an empty map as absent.
func keep(to, from map[string]string, keys []string) {
	if len(from) > 0 {
		to["kept"] = "not read"
	}
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
}
