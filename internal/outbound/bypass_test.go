package outbound

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Packages that do not connect to addresses supplied by users.
var exempt = []string{
	"internal/outbound/",         // applies the policy
	"internal/client/",           // connects to the server, for the commands and the provider
	"internal/tools/",            // is a module of its own
	"internal/testkit/",          // is test code: it stands in front of the servers of tests
	"internal/workloadidentity/", // is linked into the provider: it asks the CI system that Terraform runs in
	"internal/store/",            // connects to the etcd of --etcd-endpoints, which the operator names
}

// Ways to connect without the policy, by package: values of these types, and these functions and variables.
var bypasses = map[string][]string{
	"net":                              {"Dialer", "Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Resolver", "LookupHost", "LookupIP", "LookupAddr", "LookupTXT", "LookupSRV", "LookupCNAME", "LookupMX", "LookupNS"},
	"net/http":                         {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
	"crypto/tls":                       {"Dial", "DialWithDialer", "Dialer"},
	"net/smtp":                         {"Dial", "SendMail"},
	"net/rpc":                          {"Dial", "DialHTTP", "DialHTTPPath"},
	"syscall":                          {"Connect", "Socket"},
	"golang.org/x/net/websocket":       {"Dial", "DialConfig"},
	"golang.org/x/net/http2":           {"Transport"},
	"github.com/gorilla/websocket":     {"Dialer", "DefaultDialer"},
	"google.golang.org/grpc":           {"NewClient", "Dial", "DialContext"},
	"go.etcd.io/etcd/client/v3":        {"New", "NewFromURL", "NewFromURLs"},
	"k8s.io/client-go/rest":            {"HTTPClientFor", "TransportFor", "RESTClientFor", "UnversionedRESTClientFor"},
	"k8s.io/client-go/kubernetes":      {"NewForConfig", "NewForConfigOrDie"},
	"k8s.io/client-go/metadata":        {"NewForConfig", "NewForConfigOrDie"},
	"k8s.io/client-go/dynamic":         {"NewForConfig", "NewForConfigOrDie"},
	"k8s.io/client-go/discovery":       {"NewDiscoveryClientForConfig", "NewDiscoveryClientForConfigOrDie"},
	"k8s.io/client-go/transport":       {"New"},
	"k8s.io/client-go/tools/clientcmd": {"BuildConfigFromFlags", "BuildConfigFromKubeconfigGetter"},
	"github.com/gophercloud/gophercloud/v2/openstack": {"AuthenticatedClient"},
	"github.com/influxdata/influxdb-client-go/v2":     {"NewClient", "NewClientWithOptions"},
	"github.com/hashicorp/go-retryablehttp":           {"NewClient", "Get", "Head", "Post", "PostForm"},
	"github.com/hashicorp/go-cleanhttp":               {"DefaultClient", "DefaultPooledClient", "DefaultTransport", "DefaultPooledTransport"},
}

// allowed lists places that use one of them and apply the policy themselves.
var allowed = map[string]string{
	"internal/kube/connection.go": "dials with Dialer and asks Proxied; closes the connections of one cluster, and nobody else's",
	"internal/cli/login.go":       "connects from a person's machine to the issuer that the server names",
	"server/peers.go":             "connects to the other servers on the store, whose addresses operators give, not users",
}

// TestNothingBypassesThePolicy checks that all connections to addresses that users supply go through this package. Code
// that creates its own client or dialer fails here.
func TestNothingBypassesThePolicy(t *testing.T) {
	root := filepath.Join("..", "..")
	seen, used := 0, map[string]bool{}
	for _, tree := range []string{"internal", "server"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			if slices.ContainsFunc(exempt, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				return nil
			}
			seen++
			found, err := bypassesIn(path, nil)
			for _, what := range found {
				if allowed[name] == "" {
					t.Errorf("%s: %s connects without the address policy: use outbound.New or outbound.Dialer", name, what)
				}
				used[name] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 100 {
		t.Errorf("only %d files were checked", seen)
	}
	for name := range allowed {
		if !used[name] {
			t.Errorf("the exception for %s is no longer needed", name)
		}
	}
}

// TestBypassesAreFound tests the search itself.
func TestBypassesAreFound(t *testing.T) {
	const head = "package p\nimport (\"net\"; \"net/http\"; other \"crypto/tls\"; \"k8s.io/client-go/rest\")\n"
	for _, line := range []string{
		"var c = http.Client{}", "var c = &http.Client{Transport: nil}", "var c = new(http.Client)", "var c http.Client", "type s struct { c http.Client }",
		"var c = http.DefaultClient", "func f() { http.Get(\"\") }", "var d = (&net.Dialer{}).DialContext", "var d = net.Dial", "func f() { other.Dial(\"\", \"\", nil) }",
		"func f() { rest.HTTPClientFor(nil) }", "var t http.RoundTripper = http.DefaultTransport",
	} {
		if found, err := bypassesIn("p.go", head+line); err != nil || len(found) == 0 {
			t.Errorf("%s: %v, %v", line, found, err)
		}
	}
	for _, line := range []string{"func f(c *http.Client) { c.Get(\"\") }", "type s struct { c *http.Client }", "var r http.RoundTripper", "func f(h http.Handler, c net.Conn) {}", "var l = net.Listen"} {
		if found, err := bypassesIn("p.go", head+line); err != nil || len(found) != 0 {
			t.Errorf("%s: %v, %v", line, found, err)
		}
	}
}

// bypassesIn lists the bypasses that a file uses. A pointer to an existing client is not one.
func bypassesIn(path string, source any) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // import path by the name that the file uses
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if _, ok := bypasses[imported]; !ok {
			continue
		}
		name := imported[strings.LastIndexByte(imported, '/')+1:]
		if strings.TrimLeft(name, "v0123456789") == "" { // a version, not a name
			name = filepath.Base(filepath.Dir(imported))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[strings.TrimPrefix(name, "go-")] = imported
	}
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		if pointer, ok := node.(*ast.StarExpr); ok {
			_, isType := pointer.X.(*ast.SelectorExpr)
			return !isType
		}
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name, ok := selector.X.(*ast.Ident)
		if ok && slices.Contains(bypasses[names[name.Name]], selector.Sel.Name) {
			found = append(found, names[name.Name]+"."+selector.Sel.Name)
		}
		return true
	})
	return found, nil
}
