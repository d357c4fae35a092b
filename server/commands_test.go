package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/cli"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return executeAs(ctx, serverName, args, stdin, stdout, stderr)
}

// command runs a command line and returns the exit code and the output.
func command(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func mustCommand(t testing.TB, args ...string) string {
	t.Helper()
	code, stdout, stderr := command(t, args...)
	if code != 0 {
		t.Fatalf("scheduler-server %s exited with %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func TestMistakesOnTheCommandLineExitWithOneLine(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serve"}, "scheduler-server: data-dir: is required unless etcd-endpoints is set\n"},
		{[]string{"serve", "--nonsense"}, "scheduler-server: unknown flag: --nonsense\n"},
		{[]string{"serve", "x"}, "scheduler-server: unknown command \"x\" for \"scheduler-server serve\"\n"},
		{[]string{"backup"}, "scheduler-server: accepts 1 arg(s), received 0\n"},
		{[]string{"restore", "x"}, "scheduler-server: data-dir: is required\n"},
		{[]string{"token", "list", "--data-dir", filepath.Join(dir, "absent")}, "scheduler-server: data-dir: stat " + filepath.Join(dir, "absent") + ": no such file or directory\n"},
		{[]string{"token", "list", "--endpoint", "nowhere"}, "scheduler-server: endpoint \"nowhere\" is not an address: write http://host:port or https://host:port\n"},
		{[]string{"simulate", filepath.Join(dir, "absent")}, "scheduler-server: open " + filepath.Join(dir, "absent") + ": no such file or directory\n"},
	} {
		code, stdout, stderr := command(t, c.args...)
		if code != 1 || stdout != "" || stderr != c.want {
			t.Errorf("%v: exit code %d, output %q, message %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

// TestCommandsForPeople asks a running server, under both names of the program, and looks at the exit codes.
func TestCommandsForPeople(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	put(s, cluster("berlin"))
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("SCHEDULER_ENDPOINT", s.url)
	link := filepath.Join(t.TempDir(), controlName)
	for _, c := range []struct {
		args         []string
		code         int
		stdout, says string // PROGRAM is the name of the program
	}{
		{[]string{"get", "clusters", "-o", "name"}, 0, "cluster berlin\n", ""},
		{[]string{"get", "cl", "-o", "name"}, 0, "cluster berlin\n", ""},
		{[]string{"cordon", "berlin"}, 0, "cluster berlin: paused\n", ""},
		{[]string{"taint", "berlin", "x:Sometimes"}, 1, "", "PROGRAM: Unprocessable Entity: the request has an invalid field: "},
		{[]string{"get"}, 2, "", "PROGRAM: requires at least 1 arg(s), only received 0\n  usage: PROGRAM get KIND [NAME...] [flags]\n"},
		{[]string{"get", "clusters", "--nonsense"}, 2, "", "PROGRAM: unknown flag: --nonsense\n"},
		{[]string{"nonsense"}, 2, "", "PROGRAM: unknown command \"nonsense\" for \"PROGRAM\"\n"},
		{[]string{"get", "cluster", "paris"}, 3, "", "PROGRAM: Not Found: cluster \"paris\" does not exist\n"},
		{[]string{"get", "clusters", "--endpoint", "http://127.0.0.1:1"}, 4, "", "PROGRAM: cannot reach the scheduling server at http://127.0.0.1:1: "},
		{[]string{"serve", "x"}, 1, "", "PROGRAM: unknown command \"x\" for \"PROGRAM serve\"\n"},
	} {
		for _, name := range []string{nameOf("/usr/bin/scheduler-server"), nameOf(link)} {
			var out, errs bytes.Buffer
			code := executeAs(t.Context(), name, c.args, strings.NewReader(""), &out, &errs)
			says := strings.ReplaceAll(c.says, "PROGRAM", name)
			if code != c.code || out.String() != c.stdout || !strings.HasPrefix(errs.String(), says) || (says == "") != (errs.Len() == 0) {
				t.Errorf("%s %v: exit code %d, output %q, message %q", name, c.args, code, out.String(), errs.String())
			}
		}
	}
}

// TestEveryCommandHasItsOwnName checks the commands that are declared here and those of internal/cli.
func TestEveryCommandHasItsOwnName(t *testing.T) {
	names := map[string]bool{}
	for _, command := range newRootCommand(serverName, cli.Environment{Program: serverName}).Commands() {
		if names[command.Name()] || command.GroupID == "" {
			t.Errorf("%s is there twice, or in no group", command.Name())
		}
		names[command.Name()] = true
	}
	if nameOf("/opt/other") != serverName || nameOf("./schedulerctl.exe") != controlName {
		t.Error("the name of the program is wrong")
	}
}

func TestVersionCommand(t *testing.T) {
	if out := mustCommand(t, "version"); !strings.HasPrefix(out, "scheduler-server dev go1.") {
		t.Fatalf("version printed %q", out)
	}
}

func TestSecondServerOnADirectoryNamesTheFirst(t *testing.T) {
	dir := t.TempDir()
	start(t, testConfig(dir))
	// None of them waits for the directory, which is in use until the test ends.
	for _, args := range [][]string{
		{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0"},
		{"backup", "--data-dir", dir, filepath.Join(t.TempDir(), "b")},
		{"token", "list", "--data-dir", dir},
	} {
		code, _, stderr := command(t, args...)
		if want := fmt.Sprintf("the data directory %s is in use by process %d", dir, os.Getpid()); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", args[0], code, stderr)
		}
	}
}

func TestBackupAndRestore(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "backup.tar")
	s := start(t, testConfig(dir))
	fillFleet(s, 90, 10)
	sealed := staticProvider("sealed", nil)
	sealed.Spec.BearerToken = api.NewSecret("hush-hush")
	put(s, sealed)
	want := toJSON(t, s.objects())
	mustCommand(t, "backup", "--endpoint", s.url, file)
	decided, gaps := s.history(client.HistoryOptions{})
	if len(decided) == 0 || gaps != nil {
		t.Fatalf("%d decisions in the history, gaps %v", len(decided), gaps)
	}
	put(s, placement("shop", "later"))
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(file)
	if err != nil || bytes.Contains(archive, []byte("hush-hush")) {
		t.Fatalf("the backup contains a secret in clear text, or cannot be read: %v", err)
	}

	// The directory of a stopped server gives the same, plus the later placement; also if it was killed before it wrote
	// the history.
	written, err := filepath.Glob(filepath.Join(store.HistoryDir(dir), "*"))
	if err != nil || len(written) == 0 {
		t.Fatalf("the files of the history are %v, %v", written, err)
	}
	for _, file := range written {
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
	}
	stopped := filepath.Join(t.TempDir(), "stopped.tar")
	mustCommand(t, "backup", "--data-dir", dir, stopped)

	if code, _, stderr := command(t, "restore", "--data-dir", dir, file); code != 1 || !strings.Contains(stderr, "is not empty, it holds etcd") {
		t.Fatalf("restore over a store: exit code %d: %s", code, stderr)
	}
	key, err := os.ReadFile(filepath.Join(dir, "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	restore := func(file string) *runningServer {
		t.Helper()
		target := filepath.Join(t.TempDir(), "restored")
		mustCommand(t, "restore", "--data-dir", target, file)
		if err := os.WriteFile(filepath.Join(target, "seal.key"), key, 0o600); err != nil {
			t.Fatal(err)
		}
		return start(t, testConfig(target))
	}
	restored := restore(file)
	if got := toJSON(t, restored.objects()); got != want {
		t.Errorf("restored:\n%s\nwant:\n%s", got, want)
	}
	if got, gaps := restored.history(client.HistoryOptions{}); toJSON(t, got) != toJSON(t, decided) || gaps != nil {
		t.Errorf("the restored history has %d decisions, want %d; gaps %v", len(got), len(decided), gaps)
	}
	if err := restored.stop(); err != nil {
		t.Fatal(err)
	}
	restored = restore(stopped)
	get[*api.Placement](restored, placementKey("shop", "later"))
	if got, gaps := restored.history(client.HistoryOptions{}); len(got) != len(decided)+1 || got[len(decided)].Object.Name != "later" || gaps != nil {
		t.Errorf("the restored history has %d decisions, want %d and that of later; gaps %v", len(got), len(decided), gaps)
	}

	// A failed restore leaves nothing behind.
	if err := os.WriteFile(file, archive[:len(archive)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	if code, _, stderr := command(t, "restore", "--data-dir", target, file); code != 1 || !strings.Contains(stderr, "not a usable backup") {
		t.Fatalf("truncated backup: exit code %d: %s", code, stderr)
	}
	if err := checkEmpty(target); err != nil {
		t.Error(err)
	}
}

func TestBackupThatFailsLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	code, _, stderr := command(t, "backup", "--endpoint", "http://127.0.0.1:1", filepath.Join(dir, "b"))
	if code != 1 || !strings.Contains(stderr, "cannot reach the scheduling server") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Fatalf("files left: %v (%v)", left, err)
	}
}

func TestTokensAreDemandedFromTheFirstOn(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	if code := s.status("GET", "/v1/placements", ""); code != 200 {
		t.Fatalf("without any token: got %d, want 200", code)
	}
	admin := strings.TrimSpace(mustCommand(t, "token", "create", "--endpoint", s.url, "--role", "admin", "--description", "me"))
	if code := s.status("GET", "/v1/placements", ""); code != 401 {
		t.Fatalf("with a token created, but not sent: got %d, want 401", code)
	}
	if code := s.status("GET", "/v1/placements", admin); code != 200 {
		t.Fatalf("with the token: got %d, want 200", code)
	}
	t.Setenv("SCHEDULER_TOKEN", admin)
	t.Setenv("SCHEDULER_ENDPOINT", s.url)
	viewer := strings.TrimSpace(mustCommand(t, "token", "create", "--role", "viewer", "--namespaces", "shop,ops", "--expires-in", "1h"))
	var list []auth.Token
	if err := json.Unmarshal([]byte(mustCommand(t, "token", "list", "--json")), &list); err != nil || len(list) != 2 {
		t.Fatalf("list: %v, %v", list, err)
	}
	if got := list[1]; got.Role != auth.RoleViewer || !slices.Equal(got.Namespaces, []string{"shop", "ops"}) || got.ExpiresAt == nil || got.Hash != nil {
		t.Fatalf("unexpected list %+v", got)
	}
	for _, path := range []string{"/v1/backup", "/v1/tokens"} {
		if code := s.status("GET", path, viewer); code != 403 {
			t.Errorf("%s as a viewer: got %d, want 403", path, code)
		}
	}
	mustCommand(t, "token", "revoke", viewer)
	if code := s.status("GET", "/v1/server", viewer); code != 401 {
		t.Fatalf("revoked token: got %d, want 401", code)
	}
	if code, _, stderr := command(t, "token", "revoke", viewer); code != 1 || !strings.Contains(stderr, "does not exist") {
		t.Fatalf("revoked twice: exit code %d: %s", code, stderr)
	}
	table := mustCommand(t, "token", "list")
	if !strings.HasPrefix(table, "ID ") || !strings.Contains(table, " admin  all ") {
		t.Fatalf("table:\n%s", table)
	}
	mustCommand(t, "token", "revoke", admin)
	if code := s.status("GET", "/v1/placements", ""); code != 200 {
		t.Fatalf("after the last token was revoked: got %d, want 200", code)
	}
}

func TestOtherAddressesNeedTLSAndAToken(t *testing.T) {
	dir := t.TempDir()
	certificate, key := selfSigned(t)
	args := []string{"serve", "--data-dir", dir, "--listen", "0.0.0.0:0"}
	if code, stdout, stderr := command(t, args...); code != 1 || stdout != "" || !strings.Contains(stderr, "tls-cert-file and tls-key-file are required") {
		t.Fatalf("without TLS: exit code %d: %s", code, stderr)
	}
	args = append(args, "--tls-cert-file", certificate, "--tls-key-file", key)
	code, stdout, stderr := command(t, args...)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "there is no token yet: create one with \"scheduler-server token create --data-dir "+dir) {
		t.Fatalf("without a token: exit code %d: %s", code, stderr)
	}
	if code, stdout, stderr := command(t, "token", "create", "--data-dir", dir, "--role", "editor"); code != 1 || stdout != "" || !strings.Contains(stderr, "editor cannot be the role of the first token") {
		t.Fatalf("the first token is an editor's: exit code %d: %s", code, stderr)
	}
	token := strings.TrimSpace(mustCommand(t, "token", "create", "--data-dir", dir, "--role", "admin"))
	c := testConfig(dir)
	c.Listen, c.TLSCertFile, c.TLSKeyFile = "0.0.0.0:0", certificate, key
	s := start(t, c, func(o *client.Options) {
		o.Endpoint = strings.Replace(o.Endpoint, "[::]", "127.0.0.1", 1)
		o.CACertFile, o.Token = certificate, api.NewSecret(token)
	})
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("ready at %s", s.url)
	}
	put(s, cluster("berlin"))
	stranger, err := client.New(client.Options{Endpoint: s.client.Endpoint(), CACertFile: certificate, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Server(t.Context()); client.StatusOf(err) != 401 {
		t.Fatalf("without the token: error %v, want 401", err)
	}
}

func TestInsecureServesPlainly(t *testing.T) {
	c := testConfig(t.TempDir())
	c.Listen, c.Insecure = "0.0.0.0:0", true
	s := start(t, c)
	if !strings.HasPrefix(s.url, "http://") || !strings.Contains(s.logs.String(), "the server is insecure") {
		t.Fatalf("ready at %s; log:\n%s", s.url, s.logs)
	}
}
