package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzConfigFile checks that an accepted configuration file passes its own checks, and that nothing panics.
func FuzzConfigFile(f *testing.F) {
	for _, text := range []string{
		"", "data_dir: d\nlisten: 127.0.0.1:1\n", `{"data_dir":"d","quota":"1Gi"}`, "etcd_endpoints: [a, b]\nkey_file: k\n",
		"data_dir: d\nmax_connections: 1e3\n", "data_dir: &a [*a]\n", "data_dir: d\ninsecure: yes\n", "quota: 1E99Gi",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var c config
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		c.define(flags)
		if err := flags.Parse([]string{"--config", path}); err != nil {
			t.Fatal(err)
		}
		if err := c.load(flags, func(string) string { return "" }); err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("empty error message")
			}
			return
		}
		if c.Quota < 0 || c.MinFreeSpace <= 0 || c.MaxBody <= 0 || c.DataDir == "" && len(c.EtcdEndpoints) == 0 {
			t.Fatalf("accepted %q as %+v", text, c)
		}
	})
}

// FuzzSimulateCommand checks that each request file gives JSON, or only an error.
func FuzzSimulateCommand(f *testing.F) {
	for _, text := range []string{
		`{"objects":[{"kind":"cluster","metadata":{"name":"a"}},{"kind":"placement","metadata":{"name":"p"}}]}`,
		"objects:\n- kind: metric\n  metadata: {name: m}\n  spec: {min: 0, max: 1, metrics_provider: {name: p, metric: q}}\n",
		`{"now":"2026-01-01T00:00:00Z","delete":[{"kind":"cluster","name":"a"}]}`, "null", "[]", "a: &a [*a]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var stdout, stderr bytes.Buffer
		code := execute(context.Background(), []string{"simulate", "-"}, strings.NewReader(text), &stdout, &stderr)
		switch {
		case code == 0 && stdout.Len() > 0 && stderr.Len() == 0:
		case code == 1 && stdout.Len() == 0 && stderr.Len() > 0:
		default:
			t.Fatalf("%q: exit code %d, output %q, errors %q", text, code, stdout.String(), stderr.String())
		}
	})
}
