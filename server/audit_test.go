package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/audit"
)

// auditEntries reads an audit log; every line must be an entry.
func auditEntries(t *testing.T, path string) []audit.Entry {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var entries []audit.Entry
	for line := range strings.Lines(string(data)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// The log continues where it ended when the server starts again.
func TestAuditLogFile(t *testing.T) {
	c := testConfig(t.TempDir())
	c.AuditLog, c.AuditRequired, c.Name = filepath.Join(t.TempDir(), "audit.log"), true, "eu-1"
	var want []string
	for _, name := range []string{"a", "b"} {
		s := start(t, c)
		put(s, &api.Cluster{Metadata: api.Metadata{Name: name}})
		s.status(http.MethodGet, "/v1/clusters", "")
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		want = append(want, "started", "received "+name, "done "+name)
	}
	var got []string
	for _, e := range auditEntries(t, c.AuditLog) {
		line := string(e.Stage)
		if e.Object != nil {
			line += " " + e.Object.Name
		}
		got = append(got, line)
		if e.Server != "eu-1" || e.Stage == audit.StageStarted && e.Version != version {
			t.Errorf("got %+v", e)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAuditLogThatCannotBeWritten(t *testing.T) {
	c := testConfig(t.TempDir())
	c.AuditLog = "/dev/full"
	logger, _, err := newLogger(c, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), c, logger, t.Output())
	if err == nil || !strings.Contains(err.Error(), "audit log: ") || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("got %v, want why the audit log cannot be written", err)
	}
}
