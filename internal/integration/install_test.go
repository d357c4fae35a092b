//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// What make install installs, or an archive of a release in the mirror, is all that Terraform and OpenTofu need to apply a
// configuration.
func TestInstall(t *testing.T) {
	t.Parallel()
	prefix, installed, mirrored := t.TempDir(), t.TempDir(), t.TempDir()
	const plugins = ".terraform.d/plugins"
	// Without a build: other tests run what was built.
	install := exec.Command("make", "-C", "../..", "-o", "build", "install", "PREFIX="+prefix, "PLUGINS="+filepath.Join(installed, plugins))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive := released(t, "terraform-provider-scheduler_*.zip")
	for _, host := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		dir := filepath.Join(mirrored, plugins, host, "scheduler/scheduler")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(archive, filepath.Join(dir, filepath.Base(archive))); err != nil {
			t.Fatal(err)
		}
	}
	p := startCommand(t, filepath.Join(prefix, "bin/schedulerctl"), "serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir())
	for _, program := range []string{"terraform", "tofu"} {
		for name, home := range map[string]string{"installed": installed, "mirrored": mirrored} {
			t.Run(program+" "+name, func(t *testing.T) {
				constraint := ""
				if home == mirrored { // a version with a suffix is only chosen by name
					constraint = `version = "` + strings.Split(filepath.Base(archive), "_")[1] + `"`
				}
				dir := t.TempDir()
				config := fmt.Sprintf(`
terraform {
  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
      %s
    }
  }
}
resource "scheduler_cluster" "a" {
  name = "%s-%s"
}
`, constraint, program, name)
				if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
					command := exec.Command(program, args...)
					command.Dir = dir
					command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + home, "CHECKPOINT_DISABLE=1", "SCHEDULER_ENDPOINT=" + p.url}
					if out, err := command.CombinedOutput(); err != nil {
						t.Fatalf("%v: %v\n%s", args, err, out)
					}
				}
				get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: program + "-" + name})
			})
		}
	}
}
