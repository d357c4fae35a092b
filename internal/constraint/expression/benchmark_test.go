package expression

import "testing"

func BenchmarkMatch(b *testing.B) {
	c := full()
	for _, bb := range []struct{ name, text string }{
		{"label", `managedCluster.metadata.labels["cloud"] == "Amazon"`},
		{"typed label", `cluster.metadata.labels["cloud"] == "Amazon"`},
		{"labels", `managedCluster.metadata.labels["cloud"] in ["Amazon", "Google"] && managedCluster.metadata.labels["env"] == "prod"`},
		{"version", `semver(managedCluster.metadata.labels["version"]).isLessThan(semver("1.31.0"))`},
		{"metric", `cluster.metric("latency") < 20.0`},
		{"claims", `managedCluster.status.clusterClaims.exists(c, c.name == "cloud" && c.value == "Amazon")`},
		{"scores", `managedCluster.scores("demo").filter(s, s.name == 'cpu').all(e, e.value > 80)`},
		{"typed scores", `cluster.scores("demo").exists(s, s.name == "cpu" && s.value > 80)`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			e := mustCompile(b, bb.text)
			if why := e.Explain(c); why != "" {
				b.Fatal(why)
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Match(c)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compile(`managedCluster.scores("demo").filter(s, s.name == 'cpu').all(e, e.value > 80)`); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEnvironment measures the additional cost of a process's first expression.
func BenchmarkEnvironment(b *testing.B) {
	for b.Loop() {
		if _, err := newEnvironment(); err != nil {
			b.Fatal(err)
		}
	}
}
