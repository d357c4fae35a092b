//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// imageOf reads the tarball of an OCI layout with one image for this architecture. It returns the configuration, and the
// path of the only layer.
func imageOf(t *testing.T, layout string) (config imageConfig, layer string) {
	t.Helper()
	type descriptor struct {
		Digest      string
		Annotations map[string]string
		Platform    struct{ OS, Architecture string }
	}
	read := func(file string, into any) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(layout, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	blob := func(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }
	var top, index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	read("index.json", &top)
	for _, annotation := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
		if name := top.Manifests[0].Annotations[annotation]; !regexp.MustCompile(`^localhost/scheduler-server:[^:/]+$`).MatchString(name) {
			t.Errorf("the image is named %q in %s", name, annotation)
		}
	}
	read(blob(top.Manifests[0]), &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform.OS != "linux" || index.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("images %+v, want one for linux/%s", index.Manifests, runtime.GOARCH)
	}
	read(blob(index.Manifests[0]), &manifest)
	if len(manifest.Layers) != 1 {
		t.Fatalf("%d layers, want one", len(manifest.Layers))
	}
	read(blob(manifest.Config), &config)
	return config, filepath.Join(layout, blob(manifest.Layers[0]))
}

// imageConfig is the configuration of an OCI image.
type imageConfig struct {
	OS, Architecture string
	Config           struct {
		User                 string
		Entrypoint, Cmd, Env []string
		ExposedPorts         map[string]struct{}
		Labels               map[string]string
	}
}

// The image has the same bytes whenever it is built, and its commands make a server that serves the API with TLS, as an
// ordinary user, where nothing but its two directories can be written.
func TestImage(t *testing.T) {
	t.Parallel()
	released(t, "server_linux_*/scheduler-server")
	dir := t.TempDir()
	var built [2][]byte
	for i, name := range []string{"first.tar", "second.tar"} {
		file := filepath.Join(dir, name)
		if out, err := exec.Command("../../scripts/build-image.sh", file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var err error
		if built[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(built[0], built[1]) {
		t.Error("the second image has other bytes than the first")
	}
	layout, root := filepath.Join(dir, "layout"), filepath.Join(dir, "root")
	unpack := func(archive, to string) {
		t.Helper()
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("tar", "-xf", archive, "-C", to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	unpack(filepath.Join(dir, "first.tar"), layout)
	config, layer := imageOf(t, layout)

	want := imageConfig{OS: "linux", Architecture: runtime.GOARCH}
	want.Config.User = "65532:65532"
	want.Config.Entrypoint = []string{"scheduler-server"}
	want.Config.Cmd = []string{"serve", "--config", "/etc/scheduler/server.yaml"}
	want.Config.Env = []string{"PATH=/usr/bin"}
	want.Config.ExposedPorts = map[string]struct{}{"8665/tcp": {}}
	for label, pattern := range map[string]string{
		"title": "scheduler-server", "description": ".+", "licenses": "MPL-2.0", "version": `\d+\.\d+\.\d+.*`,
		"revision": "[0-9a-f]{40}", "created": `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`,
	} {
		label = "org.opencontainers.image." + label
		if value := config.Config.Labels[label]; !regexp.MustCompile("^" + pattern + "$").MatchString(value) {
			t.Errorf("label %s = %q, want %s", label, value, pattern)
		}
	}
	labels := config.Config.Labels
	config.Config.Labels = nil
	if !reflect.DeepEqual(config, want) {
		t.Errorf("configuration %+v, want %+v", config, want)
	}

	if os.Getuid() != 0 {
		t.Skip("only root can run the image in a file system of its own")
	}
	unpack(layer, root)
	// What a container runtime does: a read-only root, the volumes, the user.
	run := func(args ...string) []string {
		return append([]string{"unshare", "--mount", "sh", "-euc", `
cd "$0"
mkdir -p proc
mount --bind . .
mount --bind /proc "$0/proc"
for volume in etc/scheduler var/lib/scheduler; do mount --bind "$0/$volume" "$0/$volume"; done
mount -o remount,bind,ro "$0"
PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec chroot --userspec=65532:65532 --groups= "$0" "$@"`, root}, append(config.Config.Entrypoint, args...)...)
	}
	output := func(args ...string) string {
		t.Helper()
		command := run(args...)
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := output("version"); !strings.Contains(out, labels["org.opencontainers.image.version"]) {
		t.Errorf("version %q, want the label's: %v", out, labels)
	}
	token := regexp.MustCompile(`(?m)^([0-9a-f]+\.\S+)$`).FindStringSubmatch(output("init", "/etc/scheduler", "--data-dir", "/var/lib/scheduler", "--host", "127.0.0.1"))
	if token == nil {
		t.Fatal("init printed no token")
	}
	p := startCommand(t, run(append(config.Config.Cmd, "--listen", "127.0.0.1:0")...)...)
	var err error
	if p.client, err = client.New(client.Options{Endpoint: p.url, Token: api.NewSecret(token[1]), CACertFile: filepath.Join(root, "etc/scheduler/ca.pem")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.Close)
	put(p, &api.Cluster{Metadata: api.Metadata{Name: "a"}})
	get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: "a"})
	p.stop()
}
