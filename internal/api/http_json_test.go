package api

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func httpJSON(address, value string) *MetricsProvider {
	p := &MetricsProvider{Metadata: Metadata{Name: "carbon"}, Spec: MetricsProviderSpec{Type: ProviderHTTPJSON, HTTPJSON: &HTTPJSONSpec{URL: address, Value: value}}}
	p.SetDefaults()
	return p
}

func TestHTTPJSONRejectsTemplates(t *testing.T) {
	const address, value = "spec.http_json.url", "spec.http_json.value"
	for _, c := range []struct {
		url, value string
		want       []string
	}{
		{"https://carbon.test/${region}/${labels.topology.kubernetes.io/zone}?c=${cluster.name}&x=${claims.a b}&m=${metric}", "/data/${metric}/0", nil},
		{"https://carbon.test?zone=${labels.zone}", "", nil},
		{"https://carbon.test/%24%7B", "/a~0b~1c", nil},
		{"${labels.host}", "", []string{address}},
		{"${claims.scheme}://carbon.test/", "", []string{address}},
		{"https://${labels.host}/x", "", []string{address}},
		{"https://carbon.test${labels.x}/x", "", []string{address}},
		{"https://carbon.test:${claims.port}/x", "", []string{address}},
		{"https://${claims.user}@carbon.test/x", "", []string{address}},
		{"https://carbon.test${labels.a/b}", "", []string{address}},
		{`https://carbon.test\${labels.x}/`, "", []string{address}},
		{"//carbon.test/${labels.x}", "", []string{address}},
		{"/${labels.x}", "", []string{address}},
		{"https://user:pw@carbon.test/${labels.x}", "", []string{address}},
		{"ftp://carbon.test/${labels.x}", "", []string{address}},
		{"https://carbon.test/${labels.x}#${labels.y}", "", []string{address}},
		{"https://carbon.test/${labels.x", "", []string{address}},
		{"https://carbon.test/${}", "", []string{address}},
		{"https://carbon.test/${labels.}", "", []string{address}},
		{"https://carbon.test/${labels}", "", []string{address}},
		{"https://carbon.test/${secret}", "", []string{address}},
		{"https://carbon.test/${Labels.x}", "", []string{address}},
		{"http://169.254.169.254/${labels.x}", "", []string{address}},
		{"", "", []string{address}},
		{"https://carbon.test", "a", []string{value}},
		{"https://carbon.test", "${metric}", []string{value}},
		{"https://carbon.test", "/a~2", []string{value}},
		{"https://carbon.test", "/a~", []string{value}},
		{"https://carbon.test", "/${nope}", []string{value}},
	} {
		var got []string
		for _, e := range httpJSON(c.url, c.value).Validate() {
			got = append(got, e.Field)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q %q: errors at %q, want %q", c.url, c.value, got, c.want)
		}
	}
}

func TestHTTPJSONDocument(t *testing.T) {
	cluster := &Cluster{Metadata: Metadata{Name: "de-1", Labels: map[string]string{"zone": "de-west", "empty": "", "a/b": "x"}}}
	cluster.Spec.Claims = map[string]string{
		"wide": "a b/ü?&#+%", "up": "..", "far": "../../admin", "back": `..\x`, "dot": ".", "slash": "/", "nul": "\x00\r\n", "host": "@evil.test", "tilde": "~/x",
	}
	cluster.Status.Region = "de"
	for _, c := range []struct {
		url, value, address, pointer, problem string
	}{
		{"http://h/${cluster.name}/${region}?z=${labels.zone}", "/${labels.a/b}/p", "http://h/de-1/de?z=de-west", "/x/p", ""},
		{"http://h/v-${claims.wide}-x", "", "http://h/v-a%20b%2F%C3%BC%3F&%23+%25-x", "", ""},
		{"http://h/?q=${claims.wide}&r=1", "", "http://h/?q=a%20b%2F%C3%BC%3F%26%23%2B%25&r=1", "", ""},
		{"http://h/${claims.nul}", "", "http://h/%00%0D%0A", "", ""},
		{"http://h/${claims.host}", "", "http://h/@evil.test", "", ""},
		{"http://h/?q=${claims.up}${labels.empty}", "/${claims.tilde}", "http://h/?q=..", "/~0~1x", ""},
		{"http://h/a..${metric}", "/${metric}", "http://h/a..m%2Fn", "/m~1n", ""},
		{"http://h/x/${claims.up}/y", "", "", "", "changes the path"},
		{"http://h/${claims.dot}${claims.dot}", "", "", "", "changes the path"},
		{"http://h/.${claims.dot}/y", "", "", "", "changes the path"},
		{"http://h/${claims.far}", "", "", "", "changes the path"},
		{"http://h/${claims.back}", "", "", "", "changes the path"},
		{"http://h/${claims.slash}/y", "", "", "", "changes the path"},
		{"http://h/%2e${claims.dot}/y", "", "", "", "changes the path"},
		{"http://h/x/${labels.empty}/y", "", "", "", "changes the path"},
		{"http://h/${labels.none}", "", "", "", `cluster "de-1" has no label "none"`},
		{"http://h/", "/${claims.none}", "", "", `cluster "de-1" has no claim "none"`},
	} {
		p := httpJSON(c.url, c.value)
		if errs := p.Validate(); len(errs) > 0 {
			t.Errorf("%q: %v", c.url, errs)
		}
		address, pointer, err := p.Spec.HTTPJSON.Document("m/n", cluster)
		switch {
		case c.problem == "" && (err != nil || address != c.address || pointer != c.pointer):
			t.Errorf("%q %q: got %q %q, %v", c.url, c.value, address, pointer, err)
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%q %q: got %q %q, %v, want %q", c.url, c.value, address, pointer, err, c.problem)
		}
	}
	if _, _, err := httpJSON("http://h/${region}", "").Spec.HTTPJSON.Document("m", &Cluster{Metadata: Metadata{Name: "x"}}); err == nil || !strings.Contains(err.Error(), "no region") {
		t.Error(err)
	}
}

// For all labels of a cluster, the URL keeps its host and its number of path segments and query parameters, and each of
// them equals the cluster's value.
func TestHTTPJSONPlaceholdersKeepTheirPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("./\\%#?&=@:~+ ;2ef\r\n")))).Draw(t, "value")
		cluster := &Cluster{Metadata: Metadata{Name: "c"}, Spec: ClusterSpec{Claims: map[string]string{"x": value}}}
		p := httpJSON("http://prices.test:81/a/p${claims.x}/b?q=${claims.x}&r=1", "/a/${claims.x}/b")
		address, pointer, err := p.Spec.HTTPJSON.Document("m", cluster)
		if err != nil {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatalf("%q: %v", address, err)
		}
		if u.Host != "prices.test:81" || u.Scheme != "http" || u.User != nil || u.Fragment != "" || strings.Count(u.EscapedPath(), "/") != 3 ||
			u.Path != "/a/p"+value+"/b" || len(u.Query()) != 2 || u.Query().Get("q") != value {
			t.Fatalf("%q became %q", value, address)
		}
		if parts := strings.Split(pointer, "/"); len(parts) != 4 || strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[2]) != value {
			t.Fatalf("%q became the pointer %q", value, pointer)
		}
	})
}

// FuzzHTTPJSON checks that an accepted template keeps its host whatever values are filled in.
func FuzzHTTPJSON(f *testing.F) {
	for _, template := range []string{"http://h/${claims.x}", "http://h?${claims.x}=${metric}", "http://h/a${claims.x}/b/${cluster.name}", "https://h:1/%2e${claims.x}", "https://\x86:1/${claims.x}", "http://h/${labels.a/b}"} {
		f.Add(template, "/${claims.x}", "../x")
		f.Add(template, "/a~0${claims.x}", "@h:2/")
	}
	f.Fuzz(func(t *testing.T, template, value, claim string) {
		p := httpJSON(template, value)
		if len(p.Validate()) > 0 {
			return
		}
		cluster := &Cluster{Metadata: Metadata{Name: "c", Labels: map[string]string{"a/b": "l"}}, Spec: ClusterSpec{Region: "r", Claims: map[string]string{"x": claim}}}
		address, pointer, err := p.Spec.HTTPJSON.Document("m", cluster)
		if err != nil {
			return
		}
		if problem := checkPointer(pointer); problem != "" {
			t.Fatalf("pointer %q: %s", pointer, problem)
		}
		before, err := url.Parse(strings.SplitN(template, "${", 2)[0])
		if err != nil {
			t.Fatal(err)
		}
		after, err := url.Parse(address)
		if err != nil || after.Host != before.Host || after.Scheme != before.Scheme || after.User != nil {
			t.Fatalf("%q with %q became %q: %v", template, claim, address, err)
		}
	})
}
