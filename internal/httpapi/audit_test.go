package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/audit"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// auditLines is an audit log in memory.
type auditLines struct {
	mu      sync.Mutex
	entries map[string][]audit.Entry // by the ID of their request
	newest  audit.Entry
	text    bytes.Buffer
	err     error
}

// Write implements io.Writer.
func (l *auditLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	var e audit.Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	if l.entries == nil {
		l.entries = map[string][]audit.Entry{}
	}
	l.entries[e.RequestID], l.newest = append(l.entries[e.RequestID], e), e
	return l.text.Write(line)
}

// kept makes a server keep its audit log here.
func (l *auditLines) kept(t testing.TB, required bool) func(*Options) {
	log, err := audit.Open(audit.Options{Output: l, Required: required, Server: "one", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Audit = log }
}

// fail makes writes of lines fail from now on, or succeed if err is nil.
func (l *auditLines) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// of returns the lines of a request.
func (l *auditLines) of(id string) []audit.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries[id])
}

// last returns the newest line.
func (l *auditLines) last() audit.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

func (l *auditLines) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// routineOperations are those that agents repeat all day. They have a line only if they are refused.
var routineOperations = []string{
	"report-cluster", "report-cloud", "report-health-workload",
	"globalscheduler-post-region", "globalscheduler-patch-region", "globalscheduler-post-regions", "globalscheduler-patch-regions",
	"globalscheduler-post-sites", "globalscheduler-patch-sites",
}

// checkAudited checks that the response of an operation has its line in the audit log.
func (a *accessTest) checkAudited(op documented, resp *http.Response) {
	a.t.Helper()
	denied := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	writes := op.id == "backup" || op.method != http.MethodGet && op.access != auth.AccessRead && !slices.Contains(routineOperations, op.id)
	lines := a.audited.of(resp.Header.Get("X-Request-Id"))
	if !denied && !writes {
		if len(lines) > 0 {
			a.t.Errorf("%s: %d: got %+v, want no line for a read or a report", op.id, resp.StatusCode, lines)
		}
		return
	}
	if len(lines) != 1 {
		a.t.Errorf("%s: %d: %+v, want one line", op.id, resp.StatusCode, lines)
		return
	}
	line := lines[0]
	if line.Stage != audit.StageDone || line.Status != resp.StatusCode || line.Result != audit.ResultOf(resp.StatusCode) || line.Method != op.method || line.Client != "127.0.0.1" {
		a.t.Errorf("%s: %d: unexpected line %+v", op.id, resp.StatusCode, line)
	}
	if (line.Actor == nil) != (line.Problem == string(api.ProblemUnauthenticated)) || denied && (line.Reason == "" || line.Problem == "") {
		a.t.Errorf("%s: %d: got %+v, want the actor, and the reason for the rejection", op.id, resp.StatusCode, line)
	}
	if line.Result == audit.ResultAccepted && line.Object == nil && op.id != "backup" && op.id != "finish-upgrade" {
		a.t.Errorf("%s: got %+v, want an object", op.id, line)
	}
}

func TestAuditLineOfAWrite(t *testing.T) {
	var lines auditLines
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, authenticated, lines.kept(t, false))
	s.token = s.addToken(auth.RoleEditor, "shop")
	id, _, _ := strings.Cut(s.token, ".")
	const path = "/v1/namespaces/shop/placements/web"
	do := func(method, body string, status int, header ...string) audit.Entry {
		t.Helper()
		a := s.do(method, path, body, append(header, "X-Request-Id", "mine")...)
		if a.StatusCode != status {
			t.Fatalf("%s: unexpected answer %d %s", method, a.StatusCode, a.body)
		}
		e := lines.last()
		if e.RequestID != "mine" || e.Method != method || e.Route != "/v1/namespaces/{namespace}/placements/{name}" || e.Object == nil || *e.Object != (api.Key{Kind: "placement", Namespace: "shop", Name: "web"}) {
			t.Errorf("%s: unexpected line %+v", method, e)
		}
		if e.Actor == nil || e.Actor.Token != id || e.Actor.Role != "editor" || !slices.Equal(e.Actor.Namespaces, []string{"shop"}) {
			t.Errorf("%s: got actor %+v, want the token", method, e.Actor)
		}
		return e
	}
	created := do(http.MethodPut, `{"spec":{"number_of_clusters":1}}`, http.StatusCreated)
	if created.Operation != "put-placement" || created.Before != nil || created.After == nil || created.After.Generation != 1 || len(created.After.SHA256) != 64 || created.Revision == 0 {
		t.Errorf("created: unexpected line %+v", created)
	}
	same := do(http.MethodPut, `{"spec":{"number_of_clusters":1}}`, http.StatusOK)
	if same.Before == nil || same.After == nil || *same.Before != *same.After || *same.After != *created.After {
		t.Errorf("unchanged: got %+v, want the same version before and after", same)
	}
	changed := do(http.MethodPut, `{"spec":{"number_of_clusters":2}}`, http.StatusOK)
	if changed.Before == nil || *changed.Before != *created.After || changed.After.SHA256 == created.After.SHA256 || changed.After.Generation != 2 || changed.Revision <= created.Revision {
		t.Errorf("changed: got %+v, want another digest afterwards", changed)
	}
	back := do(http.MethodPut, `{"spec":{"number_of_clusters":1}}`, http.StatusOK)
	if back.After.SHA256 != created.After.SHA256 || back.After.Generation != 3 {
		t.Errorf("changed back: %+v, want the digest of %+v", back, created)
	}
	if e := do(http.MethodPut, `{"spec":{"number_of_clusters":7}}`, http.StatusPreconditionFailed, "If-Match", `"1"`); e.Result != audit.ResultRefused || e.Before != nil || e.After != nil || e.Revision != 0 || e.Problem != string(api.ProblemObjectChanged) {
		t.Errorf("rejected: unexpected line %+v", e)
	}
	deleted := do(http.MethodDelete, "", http.StatusNoContent)
	if deleted.Before == nil || *deleted.Before != *back.After || deleted.After != nil || deleted.Revision <= back.Revision {
		t.Errorf("deleted: unexpected line %+v", deleted)
	}
}

// Nothing secret gets into the log: not from objects, headers, paths, queries or errors.
func TestAuditLogHasNoSecrets(t *testing.T) {
	var lines auditLines
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, authenticated, lines.kept(t, true))
	admin := s.addToken(auth.RoleAdmin)
	s.token = admin
	const secret = "hunter2-hunter2"
	provider := `{"spec":{"type":"prometheus","prometheus":{"url":"https://prometheus.example.com"},"bearer_token":"` + secret + `"}}`
	s.mustPut("/v1/metrics-providers/prom", provider)
	withSecret := lines.last().After.SHA256
	s.mustPut("/v1/metrics-providers/prom", strings.Replace(provider, secret, secret+"-2", 1))
	if e := lines.last(); e.After.SHA256 != withSecret || e.After.Generation != 2 {
		t.Errorf("got %+v, want a digest that does not depend on the secret: the secret could be guessed from it", e)
	}
	const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://c.example.com"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"` + secret + `"}}]}`
	quoted, err := json.Marshal(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	s.mustPut("/v1/clusters/berlin", `{"spec":{"kubernetes":{"kubeconfig":`+string(quoted)+`}}}`)
	created := s.do(http.MethodPost, "/v1/tokens", `{"role":"admin"}`)
	token := decodeAs[createdToken](t, created)
	if e := lines.last(); e.Object == nil || *e.Object != (api.Key{Kind: "token", Name: token.ID}) {
		t.Errorf("got %+v, want the ID of the token", e)
	}
	s.do(http.MethodDelete, "/v1/tokens/"+token.Text, "")
	s.do(http.MethodPut, "/v1/namespaces/"+secret+"!/placements/web?password="+secret, `{"spec":{}}`)
	s.do(http.MethodPut, "/v1/namespaces/shop/placements/Web."+secret, `{"spec":{}}`)
	s.do(http.MethodPut, "/v1/metrics-providers/prom", `{"spec":{"type":"`+secret+`"}}`)
	s.token = "0123456789abcdef." + secret
	s.do(http.MethodDelete, "/v1/metrics-providers/prom", "")
	_, tokenSecret, _ := strings.Cut(token.Text, ".")
	_, adminSecret, _ := strings.Cut(admin, ".")
	for _, text := range []string{secret, tokenSecret, adminSecret} {
		if lines.contains(text) {
			t.Errorf("the audit log contains %q:\n%s", text, lines.text.String())
		}
	}
}

func TestRequiredAuditLog(t *testing.T) {
	var lines auditLines
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, lines.kept(t, true))
	const path = "/v1/namespaces/shop/placements/web"
	s.mustPut(path, `{"spec":{"number_of_clusters":1}}`, "X-Request-Id", "first")
	both := lines.of("first")
	if len(both) != 2 || both[0].Stage != audit.StageReceived || both[0].Object == nil || both[0].Status != 0 || both[1].Stage != audit.StageDone || both[1].Status != http.StatusCreated {
		t.Errorf("got %+v, want a line before the write and one afterwards", both)
	}
	lines.fail(errors.New("no space left on device"))
	writes := map[string][2]string{
		"put": {http.MethodPut, path}, "delete": {http.MethodDelete, path}, "reschedule": {http.MethodPost, path + "/reschedule"},
		"token": {http.MethodPost, "/v1/tokens"}, "backup": {http.MethodGet, "/v1/backup"}, "pod": {http.MethodPost, podsPath},
	}
	for name, write := range writes {
		a := s.do(write[0], write[1], `{"role":"viewer","spec":{"number_of_clusters":2}}`)
		if a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "audit log") {
			t.Errorf("%s: got %d %s, want 503 because of the audit log", name, a.StatusCode, a.body)
		}
	}
	if a := s.do(http.MethodGet, path, ""); a.StatusCode != http.StatusOK || decodeAs[api.Placement](t, a).Metadata.Generation != 1 {
		t.Errorf("got %d %s, want the placement unchanged", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodGet, "/readyz", ""); a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "no space left on device") {
		t.Errorf("got %d %s, want 503 because writes fail", a.StatusCode, a.body)
	}
	lines.fail(nil)
	if a := s.do(http.MethodGet, "/readyz", ""); a.StatusCode != http.StatusOK {
		t.Errorf("got %d %s, want 200 once lines can be written again", a.StatusCode, a.body)
	}
	if e := lines.last(); e.Stage != audit.StageResumed {
		t.Errorf("got %+v, want a line that marks the gap", e)
	}
	s.mustPut(path, `{"spec":{"number_of_clusters":2}}`)
}

// Without audit-required, a log that cannot be written does not stop the server.
func TestFailedAuditLogStopsNoWrites(t *testing.T) {
	var lines auditLines
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, lines.kept(t, false))
	lines.fail(errors.New("no space left on device"))
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	if a := s.do(http.MethodGet, "/readyz", ""); a.StatusCode != http.StatusOK {
		t.Errorf("got %d %s, want 200", a.StatusCode, a.body)
	}
}
