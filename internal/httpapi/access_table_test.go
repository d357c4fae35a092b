package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

var updateTable = flag.Bool("update", false, "write testdata/access.txt anew")

// accessTable lists the status that every operation returns to every role. The test writes it with -update, for review.
const accessTable = "testdata/access.txt"

// documented is an operation in the OpenAPI document.
type documented struct {
	id, method, path string
	access           auth.Access
	kinds            []api.Kind // the kinds of the objects in its body
	body             bool
}

// operations returns the operations in a server's OpenAPI document, in order.
func (s *testServer) operations() []documented {
	s.t.Helper()
	type schema struct {
		Ref   string `json:"$ref"`
		OneOf []struct {
			Ref string `json:"$ref"`
		}
		Properties map[string]struct{ Enum []string }
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string      `json:"operationId"`
			Access      auth.Access `json:"x-access"`
			RequestBody *struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	a := s.do(http.MethodGet, openAPIPath, "")
	if err := json.Unmarshal(a.body, &document); err != nil {
		s.t.Fatal(err)
	}
	kindsOf := func(ref string) []api.Kind {
		described := document.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
		if kind, ok := described.Properties["kind"]; ok && len(kind.Enum) == 1 {
			return []api.Kind{api.Kind(kind.Enum[0])}
		}
		if _, ok := described.Properties["objects"]; ok { // objects of any kind
			var all []api.Kind
			for _, info := range api.Kinds {
				all = append(all, info.Kind)
			}
			return all
		}
		return nil
	}
	var out []documented
	for path, methods := range document.Paths {
		for method, op := range methods {
			d := documented{id: op.OperationID, method: strings.ToUpper(method), path: path, access: op.Access, body: op.RequestBody != nil}
			if op.RequestBody != nil {
				for _, content := range op.RequestBody.Content {
					d.kinds = append(d.kinds, kindsOf(content.Schema.Ref)...)
					for _, one := range content.Schema.OneOf {
						d.kinds = append(d.kinds, kindsOf(one.Ref)...)
					}
				}
			}
			out = append(out, d)
		}
	}
	// The document does not describe these.
	out = append(out,
		documented{id: "healthz", method: "GET", path: "/healthz", access: auth.AccessOpen},
		documented{id: "readyz", method: "GET", path: "/readyz", access: auth.AccessOpen},
		documented{id: "openapi", method: "GET", path: openAPIPath, access: auth.AccessOpen},
		documented{id: "ui", method: "GET", path: uiPath, access: auth.AccessOpen},
		documented{id: "metrics", method: "GET", path: "/metrics", access: auth.AccessRead},
	)
	slices.SortFunc(out, func(a, b documented) int { return cmp.Compare(a.id, b.id) })
	return out
}

// person is the holder of a token. Those of shop may only access what belongs to shop.
type person struct {
	name  string
	role  auth.Role // "" = no token
	bound bool
	token string
}

// whose says who owns the target of a request.
type whose string

const (
	own     whose = "own"   // belongs to shop
	others  whose = "other" // belongs to vault
	nobodys whose = "none"  // global, without an owner
)

// namespaceOf, clusterOf, cloudOf and regionOf name the objects of each owner.
var (
	namespaceOf = map[whose]string{own: "shop", others: "vault"}
	clusterOf   = map[whose]string{own: "shops", others: "vaults", nobodys: "shared"}
)

// bodies of requests, by operation. NAMESPACE and CLUSTER are replaced by those of the target. Bodies of writes are
// built from specs.
var bodies = map[string]string{
	"report-cluster":                   `{}`,
	"report-cloud":                     `{"collector":"c","sequence":1,"full":true}`,
	"report-health-workload":           `{"cluster":"CLUSTER","status":"healthy"}`,
	"announce-interruption":            `{}`,
	"create-token":                     `{"role":"viewer"}`,
	"freeze":                           `{OWNER"reason":"NEW"}`,
	"add-member":                       `{"name":"b","url":"http://127.0.0.1:1"}`,
	"argocd-plugin":                    `{"input":{"parameters":{"name":"thing"}}}`,
	"create-preview":                   `{"kind":"placement","metadata":{"namespace":"NAMESPACE","name":"thing"},"spec":{}}`,
	"simulate":                         `{"objects":[{"kind":"placement","metadata":{"namespace":"NAMESPACE","name":"thing"},"spec":{}}]}`,
	"globalscheduler-register-cluster": `{"name":"registered-CLUSTER",OWNER"ipaddress":"10.0.0.1","region":{"region":"registered","availabilityzone":"CLUSTER"}}`,
	"globalscheduler-add-pod":          `{"name":"added","namespace":"NAMESPACE"}`,
	"globalscheduler-allocate":         `{"allocation":{"id":"added","namespace":"NAMESPACE","resource_group":{"resources":[{}]}}}`,
	"globalscheduler-patch-region":     `{"CPUMemResources":[{"AvailabilityZone":"az","CpuCapacity":NEW,"MemCapacity":1024}]}`,
	"globalscheduler-patch-regions":    `{"regionresources":[{"regionname":"CLUSTER","CPUMemResources":[{"AvailabilityZone":"az","CpuCapacity":NEW,"MemCapacity":1024}]}]}`,
	"globalscheduler-patch-sites":      `{"SiteResources":[{"SiteID":"CLUSTER--az","CPUCapacity":NEW,"MemCapacity":1024}]}`,
}

// specs of the objects that are written.
var specs = map[api.Kind]string{
	api.KindCluster: `{OWNER"region":"CLUSTER","zones":["az"],"allocatable":{"cpu":"8"}}`, api.KindCloud: `{OWNER"metrics":[]}`,
	api.KindClusterSet: `{"clusters":[]}`, api.KindMoveWindow: `{}`, api.KindRole: `{"rules":[{"verbs":["read"]}]}`, api.KindRoleBinding: `{"role":"viewer","token_ids":["0123456789abcdef"]}`, api.KindPlacementScore: `{"scores":{"cpu":1}}`,
	api.KindMetric:          `{"min":0,"max":1,"metrics_provider":{"name":"thing","metric":"m"}}`,
	api.KindMetricsProvider: `{"type":"static","static":{"metrics":{"m":0.5}}}`,
	api.KindPlacement:       `{}`, api.KindMagnumCluster: `{}`, api.KindOpenStackProject: `{}`,
	api.KindPropagationPolicy: `{` + deploymentSelector + `}`, api.KindWorkload: `{"api_version":"apps/v1","kind":"Deployment","replicas":1}`,
}

// instead maps operations to their status if access is allowed, but the request does not succeed.
var instead = map[string]int{
	"announce-interruption": 409, "withdraw-interruption": 409, "list-distributions": 409, // spot is not enabled
	"list-openstack-projects-of-cloud": 409, // there are no credentials
	"revoke-token":                     404,
	"add-member":                       409, "remove-member": 409, // the store is not one of a cluster
}

// hidden lists operations that search only among the objects that the token may see. For other objects they return 404.
var hidden = []string{
	"globalscheduler-get-cluster-by-id", "globalscheduler-get-cluster-by-name", "globalscheduler-get-pod-by-id", "globalscheduler-get-pod-by-name",
	"globalscheduler-unregister-cluster-by-id", "globalscheduler-unregister-cluster-by-name", "globalscheduler-delete-pod-by-id",
}

// rights returns the expected status.
func rights(op documented, who person, target whose) int {
	roles := map[auth.Access][]auth.Role{
		auth.AccessRead: {auth.RoleAdmin, auth.RoleEditor, auth.RoleViewer}, auth.AccessReadReports: {auth.RoleAdmin, auth.RoleEditor, auth.RoleViewer, auth.RoleAgent},
		auth.AccessWrite: {auth.RoleAdmin, auth.RoleEditor}, auth.AccessDelete: {auth.RoleAdmin, auth.RoleEditor}, auth.AccessReport: {auth.RoleAdmin, auth.RoleEditor, auth.RoleAgent}, auth.AccessAdminister: {auth.RoleAdmin},
	}[op.access]
	reads := op.access == auth.AccessRead || op.access == auth.AccessReadReports && who.role != auth.RoleAgent
	collection := op.id == "list-placement-score-everywhere" // agents see the scores of their clusters
	switch {
	case op.access == auth.AccessOpen:
		return http.StatusOK
	case who.role == "" && op.id == "argocd-plugin":
		return http.StatusForbidden // as Argo CD's documentation asks
	case who.role == "":
		return http.StatusUnauthorized
	case !slices.Contains(roles, who.role):
		return http.StatusForbidden
	case who.bound && target == others && slices.Contains(hidden, op.id):
		return http.StatusNotFound
	case who.bound && (target == others || target == nobodys && !reads && !collection):
		return http.StatusForbidden
	case who.bound && op.access == auth.AccessRead && kindOf(op).Kind.AccessControl() && strings.Contains(op.path, "{name}"):
		return http.StatusForbidden // who may do what in other namespaces is not shown
	case who.bound && target == nobodys && op.id == "list-openstack-projects-of-cloud":
		return http.StatusForbidden // the list contains the projects of all users of the cloud
	}
	return instead[op.id]
}

// accessTest sends every operation as every person.
type accessTest struct {
	*testServer
	admin   string
	asked   int
	audited *auditLines
	// changed says that something may be otherwise than restore made it.
	changed bool
	ids     map[string]string // identifiers returned by the server, by operation and target
}

// targets returns the owners that the target of an operation can have.
func (op documented) targets() []whose {
	switch {
	case strings.Contains(op.path, "{namespace}"), strings.Contains(op.path, "/pods"), strings.Contains(op.path, "/allocations"),
		strings.HasPrefix(op.path, "/v1/previews"), op.id == "simulate":
		return []whose{own, others}
	case strings.Contains(op.path, "/clusters/"), strings.Contains(op.path, "/clouds/"), strings.Contains(op.path, "resources"),
		op.id == "globalscheduler-register-cluster", op.path == "/v1/freeze":
		return []whose{own, others, nobodys}
	}
	return []whose{nobodys}
}

// fill replaces the placeholders in a text with those of a target.
func (a *accessTest) fill(text string, target whose) string {
	owner := ""
	if namespace := namespaceOf[target]; namespace != "" {
		owner = `"namespace":"` + namespace + `",`
	}
	return strings.NewReplacer("OWNER", owner, "NAMESPACE", namespaceOf[target], "CLUSTER", clusterOf[target], "NEW", strconv.Itoa(a.asked+1)).Replace(text)
}

// kindOf returns the kind of the objects under the path of an operation.
func kindOf(op documented) api.KindInfo {
	for _, info := range api.Kinds {
		if slices.Contains(strings.Split(strings.TrimPrefix(op.path, "/v1"), "/"), info.Collection) && strings.HasPrefix(op.path, "/v1/") {
			if info.Kind == api.KindCluster && strings.Contains(op.path, "placement-scores") || info.Kind == api.KindOpenStackProject && strings.HasPrefix(op.path, "/v1/clouds") {
				continue
			}
			return info
		}
	}
	return api.KindInfo{}
}

// path returns the path of a request, and body its body.
func (a *accessTest) path(op documented, target whose) string {
	name := "thing"
	if strings.Contains(op.path, "/globalscheduler/v1/pods/") {
		name = "thing-pod"
	}
	if kind := kindOf(op).Kind; kind == api.KindCluster || kind == api.KindCloud || strings.Contains(op.path, "/globalscheduler/v1/clusters") {
		name = clusterOf[target]
	}
	path := strings.NewReplacer("{namespace}", namespaceOf[target], "{cluster}", clusterOf[target], "{name}", name, "{node}", "n", "{region}", clusterOf[target],
		"{id}", cmp.Or(a.ids[idFor(op)+string(target)], "0123456789abcdef")).Replace(op.path)
	if !op.body && (strings.Contains(path, "/pods") && !strings.Contains(path, "/pods/id") || strings.Contains(path, "/allocations")) {
		path += "?namespace=" + namespaceOf[target]
	}
	if op.id == "thaw" {
		path += "?namespace=" + namespaceOf[target]
	}
	if op.id == "flux-inputs" {
		path += "?name=thing"
	}
	return path
}

func (a *accessTest) body(op documented, target whose) string {
	if !op.body {
		return ""
	}
	if kind := kindOf(op).Kind; op.method == http.MethodPut && len(op.kinds) == 1 && op.kinds[0] == kind {
		return a.fill(fmt.Sprintf(`{"metadata":{"labels":{"asked":"n%d"}},"spec":%s}`, a.asked, specs[kind]), target)
	}
	body, ok := bodies[strings.Replace(op.id, "globalscheduler-post-", "globalscheduler-patch-", 1)]
	if !ok {
		a.t.Errorf("%s takes a body: add one to bodies", op.id)
	}
	return a.fill(body, target)
}

// idFor returns what kind of identifier the path of an operation takes.
func idFor(op documented) string {
	for _, part := range []string{"clusters", "pods", "allocations", "previews"} {
		if strings.Contains(op.path, "/"+part+"/") {
			return part
		}
	}
	return ""
}

// restore creates everything that a request may refer to.
func (a *accessTest) restore() {
	a.t.Helper()
	if !a.changed {
		return
	}
	a.changed = false
	a.token = a.admin
	for _, target := range []whose{nobodys, own, others} {
		for _, info := range api.Kinds {
			key := api.Key{Kind: info.Kind, Name: "thing"}
			switch {
			case info.Kind == api.KindCluster || info.Kind == api.KindCloud:
				key.Name = clusterOf[target]
			case info.Scope == api.OfCluster:
				key.Namespace = clusterOf[target]
			case info.Scope == api.Namespaced && target == nobodys, info.Scope == api.Global && target != nobodys:
				continue
			default:
				key.Namespace = namespaceOf[target]
			}
			if a.fleet.Snapshot().Get(key) == nil || info.Kind == api.KindCluster || info.Kind == api.KindCloud {
				a.mustPut(key.URLPath(), a.fill(`{"spec":`+specs[info.Kind]+`}`, target))
			}
		}
		a.do(http.MethodPost, "/v1/freeze", a.fill(bodies["freeze"], target))
		a.do(http.MethodDelete, "/v1/clusters/registered-"+clusterOf[target], "")
		a.ids["clusters"+string(target)] = decodeAs[api.Cluster](a.t, a.do(http.MethodGet, "/v1/clusters/"+clusterOf[target], "")).Metadata.UID
		namespace := namespaceOf[target]
		if namespace == "" {
			continue
		}
		a.do(http.MethodDelete, "/v1/namespaces/"+namespace+"/workloads/added", "")
		workload := api.Key{Kind: api.KindWorkload, Namespace: namespace, Name: "thing-pod"}
		a.do(http.MethodPost, podsPath, `{"name":"thing-pod","namespace":"`+namespace+`"}`)
		a.do(http.MethodPost, allocationsPath, `{"allocation":{"id":"allocation","namespace":"`+namespace+`","resource_group":{"resources":[{}]}}}`)
		if entry := a.fleet.Snapshot().Get(workload); entry != nil {
			a.ids["pods"+string(target)] = entry.Object.Meta().UID
		}
		a.ids["allocations"+string(target)] = "allocation"
		if a.ids["previews"+string(target)] == "" {
			preview := a.do(http.MethodPost, "/v1/previews", a.fill(bodies["create-preview"], target))
			a.ids["previews"+string(target)] = decodeAs[api.Preview](a.t, preview).ID
		}
	}
}

// ask sends a request and returns the status of the response, without waiting for the end of a stream.
func (a *accessTest) ask(op documented, path, body string) (int, []byte) {
	a.t.Helper()
	a.asked++
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, op.method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.client.Do(r)
	if err != nil {
		a.t.Fatalf("%s %s: %v", op.method, path, err)
	}
	defer resp.Body.Close()
	a.checkAudited(op, resp)
	a.changed = a.changed || op.method != http.MethodGet && resp.StatusCode < 300
	if op.id == "watch" && resp.StatusCode == http.StatusOK {
		return resp.StatusCode, nil
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Errorf("%s %s: %v", op.method, path, err)
	}
	return resp.StatusCode, data
}

// TestEveryRouteForEveryRole calls every operation of the OpenAPI document as every person, on targets that they own,
// that others own and that nobody owns. It also sends objects that refer to other objects, with each field that can. A
// new operation must have an access rule, and a body if it takes one.
func TestEveryRouteForEveryRole(t *testing.T) {
	t.Parallel()
	testEveryRoute(t, authenticated, (*testServer).addToken)
}

// A binding of a trusted issuer grants the same rights as one of the server's tokens.
func TestEveryRouteForEveryBinding(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	testEveryRoute(t, i.trusted, func(_ *testServer, role auth.Role, namespaces ...string) string {
		return i.sign(t, i.subjectOf(role, namespaces...), time.Now().Add(time.Hour))
	})
}

// A role binding grants the same rights as well.
func TestEveryRouteForEveryRoleBinding(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.config.Bindings = nil
	testEveryRoute(t, i.trusted, func(s *testServer, role auth.Role, namespaces ...string) string {
		subject := i.subjectOf(role, namespaces...)
		admin := s.addToken(auth.RoleAdmin)
		spec := api.RoleBindingSpec{Role: string(role), Namespaces: namespaces, Issuer: i.config.Name, Claims: map[string]string{"sub": subject}}
		s.mustPut("/v1/role-bindings/"+strings.ReplaceAll(subject, ":", "-"), `{"spec":`+encoded(t, spec)+`}`, "Authorization", "Bearer "+admin)
		return i.sign(t, subject, time.Now().Add(time.Hour))
	})
}

func testEveryRoute(t *testing.T, adjust func(*Options), token func(s *testServer, role auth.Role, namespaces ...string) string) {
	a := &accessTest{ids: map[string]string{}, changed: true}
	a.audited = &auditLines{}
	a.testServer = startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, adjust, a.audited.kept(t, false),
		func(o *Options) { o.LoginFailureBurst, o.MaxPreviews, o.History = 100_000, 100_000, &keptHistory{} })
	a.admin = a.addToken(auth.RoleAdmin)
	people := []person{{name: "nobody"}}
	for _, role := range (auth.Roles{}).Names() {
		people = append(people, person{string(role), role, false, token(a.testServer, role)})
	}
	for _, role := range (auth.Roles{}).Names()[1:] {
		people = append(people, person{"shop-" + string(role), role, true, token(a.testServer, role, "shop")})
	}
	var table strings.Builder
	table.WriteString("# What every operation answers to everybody: ok is any success. The tokens of shop-* are for namespace shop, to which\n" +
		"# \"own\" belongs; \"other\" belongs to another namespace, \"none\" to nobody. Made by the test, with -update.\n")
	line := func(operation, access, about string, cells []string) {
		for i, who := range people {
			fmt.Fprintf(&table, "%-*s ", len(who.name), cells[i])
		}
		fmt.Fprintf(&table, "%-5s %-12s %s\n", about, access, operation)
	}
	names := make([]string, len(people))
	for i, who := range people {
		names[i] = who.name
	}
	line("operation", "access", "about", names)
	row := func(operation string, access auth.Access, about whose, statuses []int) {
		cells := make([]string, len(statuses))
		for i, status := range statuses {
			if cells[i] = strconv.Itoa(status); status < 300 {
				cells[i] = "ok"
			}
		}
		line(operation, string(access), string(about), cells)
	}
	for _, op := range a.operations() {
		known := []auth.Access{auth.AccessRead, auth.AccessReadReports, auth.AccessWrite, auth.AccessDelete, auth.AccessReport, auth.AccessAdminister, auth.AccessOpen}
		if !slices.Contains(known, op.access) {
			t.Errorf("%s %s: unknown access %q", op.method, op.path, op.access)
			continue
		}
		for _, target := range op.targets() {
			statuses := make([]int, len(people))
			for i, who := range people {
				a.restore()
				path, body := a.path(op, target), a.body(op, target)
				a.token = who.token
				status, answer := a.ask(op, path, body)
				statuses[i] = status
				want := rights(op, who, target)
				if want == 0 && (status < 200 || status >= 300) || want != 0 && status != want {
					t.Errorf("%s: %s %s %s: %d %.300s, want %d", who.name, op.method, path, body, status, answer, want)
				}
			}
			row(op.id, op.access, target, statuses)
			if target == others && strings.Contains(op.path, "{namespace}") && strings.Contains(op.path, "{name}") {
				a.askMissing(op, people)
			}
		}
		for _, kind := range op.kinds {
			a.askNaming(op, kind, people, row)
		}
	}
	if *updateTable {
		if err := os.WriteFile(accessTable, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(accessTable)
	if err != nil || string(want) != table.String() {
		t.Errorf("%s does not match the answers (%v): run go test -run %s -update, and review the difference", accessTable, err, t.Name())
	}
}

// askMissing requests an object that does not exist, in a namespace that shop's tokens have no access to. The response
// must not say that it does not exist.
func (a *accessTest) askMissing(op documented, people []person) {
	for _, who := range people {
		if !who.bound {
			continue
		}
		missing := strings.ReplaceAll(a.path(op, others), "/thing", "/missing")
		body := a.body(op, others)
		a.token = who.token
		if status, answer := a.ask(op, missing, body); status != http.StatusForbidden {
			a.t.Errorf("%s: %s %s: %d %s, want 403", who.name, op.method, missing, status, answer)
		}
	}
}

// askNaming sends objects of a kind that refer to others, with each field that can.
func (a *accessTest) askNaming(op documented, kind api.Kind, people []person, row func(string, auth.Access, whose, []int)) {
	for _, f := range api.ReferenceFields() {
		if f.Kind != kind || strings.HasPrefix(f.Field, "status.") || !hideable(f) {
			continue
		}
		naming, ok := namingSpecs[string(f.Kind)+" "+f.Field]
		if !ok {
			a.t.Errorf("%s %s: add an example to namingSpecs", f.Kind, f.Field)
			continue
		}
		global := strings.Contains(op.path, "/v1/propagation-policies") || strings.HasPrefix(op.path, "/v1/cluster-sets") || naming.namespace == "" && naming.path == ""
		for _, target := range []whose{own, others} {
			name := "thing"
			if to, _ := api.LookupKind(f.To); to.Scope == api.Global {
				name = clusterOf[target]
			}
			spec := strings.NewReplacer("HIDDEN", name, "VAULT", namespaceOf[target]).Replace(naming.spec)
			if strings.Contains(f.Field, "resource_selectors") && strings.Contains(op.path, "{namespace}") {
				continue // a policy in a namespace only selects from it
			}
			body := `{"spec":` + spec + `}`
			path := strings.NewReplacer("{namespace}", "shop", "{name}", "named").Replace(op.path)
			switch op.id {
			case "create-preview":
				body = document(kind, naming.namespace, "named", `"spec":`+spec)
			case "simulate":
				body = `{"objects":[` + document(kind, naming.namespace, "named", `"spec":`+spec) + `]}`
			}
			statuses := make([]int, len(people))
			for i, who := range people {
				if a.changed {
					a.restore()
					a.do(http.MethodDelete, path, "")
				}
				a.token = who.token
				status, answer := a.ask(op, path, body)
				statuses[i] = status
				want := rights(op, who, own)
				if op.access == auth.AccessWrite && global && who.bound {
					want = http.StatusForbidden
				}
				if want == 0 && who.bound && target == others {
					want = http.StatusForbidden
					if field := strings.ReplaceAll(f.Field, "[]", "[0]"); who.role != auth.RoleAgent && !strings.Contains(string(answer), field+`"`) {
						a.t.Errorf("%s: %s %s %s: %s does not name %s", who.name, op.method, path, body, answer, field)
					}
				}
				if want == 0 && (status < 200 || status >= 300) || want != 0 && status != want {
					a.t.Errorf("%s: %s %s %s: %d %.300s, want %d", who.name, op.method, path, body, status, answer, want)
				}
			}
			row(op.id+": "+string(kind)+" "+f.Field, "naming", target, statuses)
		}
	}
}
