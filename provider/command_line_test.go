package provider_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// providerBinary is the provider, built once for the tests that run Terraform's command line: the test framework shows
// neither warnings nor how often an error is reported.
var providerBinary struct {
	once sync.Once
	dir  string
	err  error
}

func builtProvider(t *testing.T) string {
	t.Helper()
	b := &providerBinary
	b.once.Do(func() {
		//nolint:usetesting // it is used after the end of the first test
		if b.dir, b.err = os.MkdirTemp("", "scheduler-provider-"); b.err != nil {
			return
		}
		build := exec.Command("go", "build", "-o", filepath.Join(b.dir, "terraform-provider-scheduler"), "..")
		if out, err := build.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("go build ..: %w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.dir
}

// workspace is a directory in which Terraform or OpenTofu runs with the built provider.
type workspace struct {
	t   *testing.T
	dir string
	env []string
}

// newWorkspace creates a directory for a configuration without its terraform block. settings are additional environment
// variables.
func newWorkspace(t *testing.T, config string, settings ...string) *workspace {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
	w := &workspace{t: t, dir: t.TempDir()}
	rc := filepath.Join(w.dir, "terraform.rc")
	w.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	w.env = append(w.env, settings...)
	w.file("terraform.rc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"scheduler/scheduler\" = %q\n  }\n  direct {}\n}\n", builtProvider(t)))
	w.file("versions.tf", "terraform {\n  required_providers {\n    scheduler = { source = \"scheduler/scheduler\" }\n  }\n}\n")
	w.file("main.tf", config)
	return w
}

func (w *workspace) file(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// message is an error or a warning that Terraform shows.
type message struct {
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
}

// ran is the result of a command.
type ran struct {
	code     int
	errors   []message
	warnings []message
	output   string
}

// run runs a command such as plan or apply, and returns Terraform's output.
func (w *workspace) run(args ...string) ran {
	w.t.Helper()
	binary := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if binary == "" {
		binary = "terraform"
	}
	command := exec.CommandContext(w.t.Context(), binary, append(args, "-json", "-no-color")...)
	command.Dir, command.Env = w.dir, w.env
	out, err := command.CombinedOutput()
	result := ran{output: string(out)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	result.code = command.ProcessState.ExitCode()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			Type       string  `json:"type"`
			Diagnostic message `json:"diagnostic"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Type != "diagnostic" {
			continue
		}
		switch d := line.Diagnostic; {
		case d.Severity == "error":
			result.errors = append(result.errors, d)
		case !strings.Contains(d.Summary, "development overrides"):
			result.warnings = append(result.warnings, d)
		}
	}
	return result
}

// ok runs a command that must succeed.
func (w *workspace) ok(args ...string) ran {
	w.t.Helper()
	result := w.run(args...)
	if len(result.errors) > 0 || result.code == 1 {
		w.t.Fatalf("%s: exit code %d\n%s", strings.Join(args, " "), result.code, result.output)
	}
	return result
}
