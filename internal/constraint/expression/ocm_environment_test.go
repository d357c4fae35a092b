package expression

import (
	"strings"
	"testing"
	"time"
)

// managed returns a cluster that sets every field that Open Cluster Management's ManagedCluster can have.
func managed() *testCluster {
	return &testCluster{
		name:              "eu-1",
		uid:               "0b9d7a52-6a1c-4f0e-9b6e-1f4d2c3b4a59",
		generation:        3,
		createdAt:         time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		labels:            map[string]string{"env": "prod", "version": "1.30.0"},
		claims:            map[string]string{"cloud": "Amazon", "gpus": `{"H100":[{"small":10},{"large":2}]}`, "endpoint": "https://api.example.com:6443/healthz?verbose=1&x=a&x=b"},
		taints:            []Taint{{Key: "k1", Value: "v1", Effect: "NoSelect", TimeAdded: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}, {Key: "k2", Effect: "NoSelectIfNew"}},
		conditions:        []Condition{{Type: "ManagedClusterConditionAvailable", Status: "True", Reason: "ManagedClusterAvailable", Message: "is well", LastTransitionAt: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}, {Type: "HubAcceptedManagedCluster", Status: "True"}},
		kubernetesVersion: "v1.31.2",
		leaseSeconds:      30,
		capacity:          map[string]string{"cpu": "8", "memory": "64Gi"},
		allocatable:       map[string]string{"cpu": "7500m", "memory": "60Gi"},
		scores:            map[string][]Score{"demo": {{"cpu", 90}, {"memory", -20}}},
	}
}

// TestOpenClusterManagementEnvironment uses every field and function of the environment in which Open Cluster
// Management evaluates expressions: CEL's standard library and optional types; the strings extension; the Kubernetes
// libraries for lists, regular expressions, URLs, quantities, IP addresses, CIDR blocks, formats and versions; scores
// and parseJSON. want is "" if the expression is true, or else a part of its explanation.
func TestOpenClusterManagementEnvironment(t *testing.T) {
	const isFalse = "is false"
	for _, tt := range []struct{ text, want string }{
		// Fields of a ManagedCluster.
		{`managedCluster.metadata.name == "eu-1"`, ""},
		{`managedCluster.metadata.uid == "0b9d7a52-6a1c-4f0e-9b6e-1f4d2c3b4a59"`, ""},
		{`managedCluster.metadata.generation == 3`, ""},
		{`timestamp(managedCluster.metadata.creationTimestamp) < timestamp("2026-01-03T00:00:00Z")`, ""},
		{`managedCluster.metadata.creationTimestamp == "2026-01-02T03:04:05Z"`, ""},
		{`managedCluster.metadata.labels["env"] == "prod"`, ""},
		{`has(managedCluster.metadata.annotations)`, isFalse},
		{`managedCluster.spec.hubAcceptsClient`, ""},
		{`managedCluster.spec.leaseDurationSeconds == 30`, ""},
		{`has(managedCluster.spec.managedClusterClientConfigs)`, isFalse},
		{`managedCluster.spec.managedClusterClientConfigs.size() > 0`, "no such key: managedClusterClientConfigs"},
		{`managedCluster.spec.taints.exists(t, t.key == "k1")`, ""},
		{`managedCluster.spec.taints.exists(t, t.key == "k3")`, isFalse},
		{`managedCluster.spec.taints.all(t, t.effect in ["NoSelect", "NoSelectIfNew"])`, ""},
		{`managedCluster.spec.taints[0].value == "v1" && !has(managedCluster.spec.taints[1].value)`, ""},
		{`managedCluster.spec.taints[0].timeAdded == "2026-01-02T00:00:00Z" && managedCluster.spec.taints[1].timeAdded == null`, ""},
		{`managedCluster.spec.taints.filter(t, t.timeAdded != null).all(t, timestamp(t.timeAdded) > timestamp("2026-01-01T00:00:00Z"))`, ""},
		{`managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "True")`, ""},
		{`managedCluster.status.conditions.exists_one(c, c.reason == "ManagedClusterAvailable" && c.message == "is well" && c.lastTransitionTime == "2026-01-03T00:00:00Z")`, ""},
		{`managedCluster.status.conditions.filter(c, c.type == "HubAcceptedManagedCluster").all(c, !has(c.observedGeneration) && c.reason == "" && c.lastTransitionTime == null)`, ""},
		{`managedCluster.status.version.kubernetes == "v1.31.2"`, ""},
		{`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.30.0"))`, ""},
		{`quantity(managedCluster.status.capacity.cpu).isGreaterThan(quantity(managedCluster.status.allocatable["cpu"]))`, ""},
		{`managedCluster.status.clusterClaims.exists(c, c.name == "cloud" && c.value == "Amazon")`, ""},
		{`has(managedCluster.status.managedNamespaces)`, isFalse},
		{`managedCluster.map(k, k) == ["metadata", "spec", "status"]`, ""},
		{`has(managedCluster.nonsense)`, isFalse},
		{`managedCluster.spec.nonsense == 1`, "no such key: nonsense"},

		// scores and parseJSON.
		{`managedCluster.scores("demo").filter(s, s.name == "cpu").all(s, s.value > 80)`, ""},
		{`managedCluster.scores("other").size() == 0`, `no valid scores of "other"`},
		{`managedCluster.status.clusterClaims.exists(c, c.name == "gpus" && c.value.parseJSON().H100.exists(e, e.large == 2))`, ""},
		{`parseJSON("{\"a\": [1, true, null, \"x\"]}").a == [1, true, null, "x"]`, ""},
		{`parseJSON("{").a == 1`, "not JSON"},

		// Conversions, also of constants.
		{`string(1) == "1"`, ""},
		{`string(1.5) == "1.5" && string(true) == "true" && string(b"ab") == "ab" && string(2u) == "2"`, ""},
		{`string(duration("1h")) == "3600s" && string(timestamp("2026-01-01T00:00:00Z")) == "2026-01-01T00:00:00Z"`, ""},
		{`duration("1h") > duration("1m")`, ""},
		{`timestamp("2026-01-02T00:00:00Z") - timestamp("2026-01-01T00:00:00Z") == duration("24h")`, ""},
		{`int("7") + int(2.9) + int(1u) == 10 && uint("3") == 3u && double("1.5") == 1.5 && bool("true") && bytes("ab") == b"ab"`, ""},
		{`[string(1), string(2)].exists(x, x == "2")`, ""},
		{`["1", "2"].map(x, int(x)).sum() == 3`, ""},
		{`int(timestamp("1970-01-01T00:01:00Z")) == 60`, ""},
		{`dyn(1) == 1.0 && type(1) == int && type("a") == string`, ""},
		{`int("x") == 1`, "type conversion error"},
		{`true || int("x") == 1`, ""},
		{`[1].exists(i, true || int("x") == i)`, ""},
		{`duration("1y") == duration("1h")`, "duration"},

		// CEL's standard library.
		{`size("abc") == 3 && "abc".size() == 3 && [1].size() == 1 && {"a": 1}.size() == 1 && size(b"ab") == 2`, ""},
		{`"abc".contains("b") && "abc".startsWith("a") && "abc".endsWith("c") && "abc".matches("^a.c$") && matches("abc", "b")`, ""},
		{`[1, 2].all(x, x > 0) && [1, 2].exists(x, x == 2) && [1, 2].exists_one(x, x == 2) && [1, 2].map(x, x * 2) == [2, 4] && [1, 2].map(x, x > 1, x) == [2] && [1, 2].filter(x, x > 1) == [2]`, ""},
		{`1 in [1, 2] && "a" in {"a": 1} && 7 / 2 == 3 && 7 % 2 == 1 && -1 < 0 && !false && (true ? 1 : 2) == 1 && "a" + "b" == "ab" && [1] + [2] == [1, 2]`, ""},
		{`timestamp("2026-03-04T05:06:07.008Z").getFullYear() == 2026 && timestamp("2026-03-04T05:06:07.008Z").getMonth() == 2 && timestamp("2026-03-04T05:06:07.008Z").getDate() == 4 && timestamp("2026-03-04T05:06:07.008Z").getDayOfMonth() == 3`, ""},
		{`timestamp("2026-03-04T05:06:07.008Z").getDayOfWeek() == 3 && timestamp("2026-03-04T05:06:07.008Z").getDayOfYear() == 62 && timestamp("2026-03-04T05:06:07.008Z").getHours("+01:00") == 6`, ""},
		{`timestamp("2026-03-04T05:06:07.008Z").getMinutes() == 6 && timestamp("2026-03-04T05:06:07.008Z").getSeconds() == 7 && timestamp("2026-03-04T05:06:07.008Z").getMilliseconds() == 8`, ""},
		{`duration("90m").getHours() == 1 && duration("90m").getMinutes() == 90 && duration("1s").getSeconds() == 1 && duration("1s5ms").getMilliseconds() == 1005`, ""},
		{`1 / 0 == 1`, "division by zero"},

		// Optional types.
		{`optional.of(1).hasValue() && !optional.none().hasValue() && optional.of(1).value() == 1 && optional.none().orValue(2) == 2 && optional.none().or(optional.of(3)).value() == 3`, ""},
		{`optional.ofNonZeroValue("").hasValue()`, isFalse},
		{`managedCluster.metadata.?labels.env.orValue("") == "prod" && managedCluster.metadata.labels[?"none"].orValue("x") == "x"`, ""},
		{`managedCluster.metadata.?annotations.orValue({}) == {}`, ""},
		{`optional.of(2).optMap(x, x * 2).value() == 4 && optional.of(2).optFlatMap(x, optional.of(x)).value() == 2`, ""},
		{`{?"a": optional.none(), "b": 1} == {"b": 1} && [?optional.none(), 1] == [1]`, ""},

		// Strings.
		{`"hello".charAt(1) == "e" && "hello".indexOf("l") == 2 && "hello".indexOf("l", 3) == 3 && "hello".lastIndexOf("l") == 3 && "hello".lastIndexOf("l", 2) == 2`, ""},
		{`"Ab".lowerAscii() == "ab" && "Ab".upperAscii() == "AB" && " a ".trim() == "a" && "abc".substring(1) == "bc" && "abc".substring(0, 1) == "a"`, ""},
		{`"a,b".split(",") == ["a", "b"] && "a,b,c".split(",", 2) == ["a", "b,c"] && ["a", "b"].join() == "ab" && ["a", "b"].join("-") == "a-b"`, ""},
		{`"aXbX".replace("X", "y") == "ayby" && "aXbX".replace("X", "y", 1) == "aybX" && "abc".reverse() == "cba" && strings.quote("a") == "\"a\""`, ""},
		{`"%s has %d at %.1f%%".format(["eu", 3, 7.25]) == "eu has 3 at 7.2%"`, ""},
		{`"%s-%d".format([managedCluster.metadata.name, managedCluster.status.conditions.size()]) == "eu-1-2"`, ""},
		{`"%x %X %o %b %e %s".format([255, 255, 8, 5, 1.5, [1, "a"]]) == "ff FF 10 101 1.500000e+00 [1, a]"`, ""},
		{`"%d".format([managedCluster.metadata.name]) == ""`, "format"},

		// Lists.
		{`[1, 2, 2].isSorted() && ![2, 1].isSorted() && ["a", "b"].isSorted() && [1.5, 2.5].sum() == 4.0 && [1u].sum() == 1u && [duration("1m"), duration("2m")].sum() == duration("3m")`, ""},
		{`[1, 3, 2].max() == 3 && [1, 3, 2].min() == 1 && ["b", "a"].min() == "a" && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(4) == -1`, ""},
		{`[].sum() == 0 && [].isSorted()`, ""},
		{`[].max() == 1`, "max"},

		// Regular expressions.
		{`"abc 123".find("[0-9]+") == "123" && "abc".find("[0-9]+") == "" && "1 2 3".findAll("[0-9]") == ["1", "2", "3"] && "1 2 3".findAll("[0-9]", 2) == ["1", "2"]`, ""},

		// URLs.
		{`isURL("https://user:pass@example.com:80/path?query=val#fragment") && isURL("/absolute-path") && !isURL("https://a:b:c/") && !isURL("../relative-path")`, ""},
		{`url("https://example.com:80/p").getScheme() == "https" && url("/path").getScheme() == ""`, ""},
		{`url("https://example.com:80/p").getHost() == "example.com:80" && url("https://[::1]:80/p").getHost() == "[::1]:80" && url("/path").getHost() == ""`, ""},
		{`url("https://example.com:80/p").getHostname() == "example.com" && url("https://[::1]:80/p").getHostname() == "::1"`, ""},
		{`url("https://example.com:80/p").getPort() == "80" && url("https://example.com/p").getPort() == ""`, ""},
		{`url("https://example.com/path with spaces/").getEscapedPath() == "/path%20with%20spaces/" && url("https://example.com").getEscapedPath() == ""`, ""},
		{`url("https://example.com/path?k1=a&k2=b&k2=c#f").getQuery() == {"k1": ["a"], "k2": ["b", "c"]} && url("https://example.com/path").getQuery() == {}`, ""},
		{`url("https://example.com/?b=1&a=2").getQuery().map(k, k) == ["a", "b"]`, ""},
		{`url("https://example.com/") == url("https://example.com/") && url("https://a/") != url("https://b/") && type(url("/a")) == type(url("/b"))`, ""},
		{`managedCluster.status.clusterClaims.exists(c, c.name == "endpoint" && isURL(c.value) && url(c.value).getPort() == "6443" && "b" in url(c.value).getQuery()["x"])`, ""},
		{`url("not a url").getHost() == ""`, `"not a url" is not a URL`},

		// Quantities.
		{`quantity("1500m").compareTo(quantity("1.5")) == 0 && quantity("1") == quantity("1000m") && isQuantity("1Gi") && !isQuantity("1Q")`, ""},
		{`quantity("50k").sign() == 1 && quantity("50k").isInteger() && quantity("50k").asInteger() == 50000 && quantity("1500m").asApproximateFloat() == 1.5`, ""},
		{`quantity("50k").add(quantity("20")) == quantity("50020") && quantity("50k").add(20) == quantity("50020") && quantity("50k").sub(quantity("20k")).isLessThan(quantity("31k")) && quantity("2").sub(1) == quantity("1")`, ""},
		{`quantity("many").sign() == 1`, `"many" is not a quantity`},
		{`quantity("9223372036854775807").isLessThan(quantity("9223372036854775808"))`, `"9223372036854775808" is out of range`},
		{`isQuantity("7Ei") && !isQuantity("8Ei") && quantity("7Ei").isLessThan(quantity("7Ei").add(1))`, ""},

		// IP addresses and CIDR blocks.
		{`isIP("127.0.0.1") && isIP("::1") && !isIP("127.0.0.256") && ip.isCanonical("127.0.0.1") && !ip.isCanonical("2001:DB8::1")`, ""},
		{`ip("127.0.0.1").family() == 4 && ip("::1").family() == 6 && ip("0.0.0.0").isUnspecified() && ip("127.0.0.1").isLoopback() && string(ip("192.168.0.1")) == "192.168.0.1"`, ""},
		{`ip("224.0.0.1").isLinkLocalMulticast() && ip("169.254.169.254").isLinkLocalUnicast() && ip("192.168.0.1").isGlobalUnicast() && ip("10.0.0.1") == ip("10.0.0.1")`, ""},
		{`cidr("192.168.0.0/24").containsIP(ip("192.168.0.1")) && cidr("192.168.0.0/24").containsIP("192.168.0.1") && !cidr("192.168.0.0/24").containsIP("192.168.1.1")`, ""},
		{`cidr("192.168.0.0/16").containsCIDR(cidr("192.168.10.0/24")) && cidr("192.168.0.0/16").containsCIDR("192.168.10.0/24") && isCIDR("10.0.0.0/8") && !isCIDR("10.0.0.0/33")`, ""},
		{`cidr("192.168.1.0/24").ip() == ip("192.168.1.0") && cidr("192.168.1.7/24").masked() == cidr("192.168.1.0/24") && cidr("192.168.1.0/24").prefixLength() == 24 && string(cidr("10.0.0.0/8")) == "10.0.0.0/8"`, ""},
		{`ip(managedCluster.metadata.name).family() == 4`, "eu-1"},

		// Formats.
		{`!format.dns1123Label().validate("my-label").hasValue() && format.dns1123Label().validate("Not_A_Label").hasValue()`, ""},
		{`!format.dns1123Subdomain().validate("apiserver.example.com").hasValue() && format.dns1123Subdomain().validate("a..b").hasValue()`, ""},
		{`!format.dns1035Label().validate("my-label").hasValue() && format.dns1035Label().validate("1label").hasValue()`, ""},
		{`!format.dns1123LabelPrefix().validate("my-label-").hasValue() && format.dns1123Label().validate("my-label-").hasValue()`, ""},
		{`!format.dns1123SubdomainPrefix().validate("my.sub-").hasValue() && !format.dns1035LabelPrefix().validate("my-").hasValue()`, ""},
		{`!format.qualifiedName().validate("example.com/name").hasValue() && format.qualifiedName().validate("a/b/c").hasValue()`, ""},
		{`!format.labelValue().validate("my_value.1").hasValue() && format.labelValue().validate("bad value").hasValue()`, ""},
		{`!format.uri().validate("http://example.com").hasValue() && format.uri().validate("no uri").hasValue()`, ""},
		{`!format.uuid().validate("123e4567-e89b-12d3-a456-426614174000").hasValue() && !format.uuid().validate(managedCluster.metadata.uid).hasValue() && format.uuid().validate("123e4567").hasValue()`, ""},
		{`!format.byte().validate("aGVsbG8=").hasValue() && format.byte().validate("hello!").hasValue()`, ""},
		{`!format.date().validate("2021-01-01").hasValue() && format.date().validate("2021-13-01").hasValue()`, ""},
		{`!format.datetime().validate("2021-01-01T00:00:00Z").hasValue() && !format.datetime().validate("2021-01-01T23:59:59.123+02:00").hasValue() && format.datetime().validate("2021-01-01").hasValue()`, ""},
		{`format.named("dns1123Label").hasValue() && !format.named("nonsense").hasValue() && !format.named("uuid").value().validate("123e4567-e89b-12d3-a456-426614174000").hasValue()`, ""},
		{`format.dns1123Label().validate("Not").value().size() == 1 && format.dns1123Label() == format.named("dns1123Label").value()`, ""},

		// Versions.
		{`semver("1.2.3").compareTo(semver("1.2.4")) == -1 && semver("1.2.3").isLessThan(semver("2.0.0")) && isSemver("1.0.0") && !isSemver("v1") && isSemver("v1", true)`, ""},
		{`semver("1.2.3-rc.1+build").major() == 1 && semver("1.2.3").minor() == 2 && semver("v1.2.3", true).patch() == 3 && semver("1.0.0") == semver("1.0.0")`, ""},
	} {
		t.Run(tt.text, func(t *testing.T) {
			e, err := Compile(tt.text)
			if err != nil {
				t.Fatalf("does not compile: %v", err)
			}
			why := e.Explain(managed())
			if tt.want == "" && why != "" || !strings.Contains(why, tt.want) {
				t.Errorf("Explain = %q, want %q", why, tt.want)
			}
			if match := e.Match(managed()); match != (tt.want == "") {
				t.Errorf("Match = %t", match)
			}
		})
	}
}

// TestAbsentInOpenClusterManagement checks that properties that a ManagedCluster lacks are absent there, not empty: an
// expression that reads one fails, even if it would be true of an empty value.
func TestAbsentInOpenClusterManagement(t *testing.T) {
	bare := &testCluster{name: "bare"}
	for _, tt := range []struct{ text, want string }{
		{`!has(managedCluster.metadata.labels) && !has(managedCluster.status.clusterClaims) && !has(managedCluster.status.capacity) && !has(managedCluster.status.allocatable) && !has(managedCluster.spec.taints)`, ""},
		{`has(managedCluster.metadata) && has(managedCluster.spec) && has(managedCluster.status) && has(managedCluster.status.version) && has(managedCluster.status.conditions)`, ""},
		{`has(managedCluster.status.version.kubernetes)`, "is false"},
		{`managedCluster.status.version == {}`, ""},
		{`managedCluster.metadata.creationTimestamp == null`, ""},
		{`has(managedCluster.metadata.uid) || has(managedCluster.metadata.generation)`, "is false"},
		{`has(managedCluster.spec.hubAcceptsClient) && has(managedCluster.spec.leaseDurationSeconds)`, ""},
		{`managedCluster.spec.leaseDurationSeconds == 60`, ""},
		{`managedCluster.metadata.labels.size() == 0`, "no such key: labels"},
		{`!("env" in managedCluster.metadata.labels)`, "no such key: labels"},
		{`!has(managedCluster.metadata.labels.env)`, "no such key: labels"},
		{`managedCluster.metadata.labels.all(k, false)`, "no such key: labels"},
		{`managedCluster.status.clusterClaims.all(c, false)`, "no such key: clusterClaims"},
		{`managedCluster.spec.taints.all(t, false)`, "no such key: taints"},
		{`quantity(managedCluster.status.capacity.cpu).sign() >= 0`, "no such key: capacity"},
		{`quantity(managedCluster.status.allocatable.cpu).sign() >= 0`, "no such key: allocatable"},
		{`managedCluster.status.version.kubernetes != ""`, "no such key: kubernetes"},
		{`managedCluster.metadata.labels["env"] == "prod" || true`, ""},
		{`managedCluster.metadata.?labels.?env.orValue("none") == "none"`, ""},
		// `cluster` has defaults for absent properties.
		{`cluster.metadata.labels.size() == 0 && cluster.spec.claims.size() == 0 && !has(cluster.metadata.labels) && !("env" in cluster.metadata.labels)`, ""},
	} {
		t.Run(tt.text, func(t *testing.T) {
			e := mustCompile(t, tt.text)
			why := e.Explain(bare)
			if tt.want == "" && why != "" || !strings.Contains(why, tt.want) {
				t.Errorf("Explain = %q, want %q", why, tt.want)
			}
			if match := e.Match(bare); match != (tt.want == "") {
				t.Errorf("Match = %t", match)
			}
		})
	}
}
