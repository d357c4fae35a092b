package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// unpack unpacks a tarball into a directory.
func unpack(t *testing.T, archive io.Reader, dir string) {
	t.Helper()
	r := tar.NewReader(archive)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		case tar.TypeReg:
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
		default:
			t.Fatalf("%s is neither a file nor a directory", header.Name)
		}
		if err == nil {
			err = os.Chmod(path, header.FileInfo().Mode())
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, header.Uid, header.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// imageIndex returns the image in the tarball, as those who push it find it.
func imageIndex(t *testing.T, out string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Open(filepath.Join(out, imageName+".tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpack(t, file, dir)
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("the layout has %+v, want one image with the tag 1.2.3", manifest.Manifests)
	}
	index, err := all.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// imageFor returns the image for an architecture.
func imageFor(t *testing.T, index v1.ImageIndex, arch string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Platform.OS == "linux" && d.Platform.Architecture == arch })
	if i < 0 {
		t.Fatalf("there is no image for %s", arch)
	}
	image, err := index.Image(manifest.Manifests[i].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unpackImage unpacks an image and returns its directory and configuration.
func unpackImage(t *testing.T, arch string) (string, v1.Config) {
	t.Helper()
	_, out := built(t)
	image := imageFor(t, imageIndex(t, out), arch)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != arch {
		t.Errorf("the configuration is for %s, want %s", config.Architecture, arch)
	}
	root := t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	unpack(t, files, root)
	return root, config.Config
}

func TestImageIsValid(t *testing.T) {
	_, out := built(t)
	index := imageIndex(t, out)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(out, imageName+".digest")); err != nil || strings.TrimSpace(string(text)) != digest.String() {
		t.Errorf("the digest is %s, the file says %q (%v)", digest, text, err)
	}
}

func TestImageHasOnlyTheServer(t *testing.T) {
	for _, arch := range architectures {
		root, config := unpackImage(t, arch)
		if config.User != "65532:65532" {
			t.Errorf("%s: it runs as %q", arch, config.User)
		}
		var files []string
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files = append(files, strings.TrimPrefix(path, root))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		// No shell, and nothing else that starts programs.
		want := []string{
			"/etc/group", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt", "/usr/bin/scheduler-server",
			"/usr/share/doc/scheduler-server/copyright", "/usr/share/doc/scheduler-server/sbom.cdx.json",
		}
		if !slices.Equal(files, want) {
			t.Errorf("%s: the files are %v, want %v", arch, files, want)
		}
		info, err := buildinfo.ReadFile(filepath.Join(root, "usr/bin/scheduler-server"))
		if err != nil {
			t.Fatal(err)
		}
		for _, setting := range info.Settings {
			if setting.Key == "GOARCH" && setting.Value != arch || setting.Key == "CGO_ENABLED" && setting.Value != "0" {
				t.Errorf("%s: the server was built with %s=%s", arch, setting.Key, setting.Value)
			}
		}
		roots := x509.NewCertPool()
		certificates, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
		if n := bytes.Count(certificates, []byte("BEGIN CERTIFICATE")); err != nil || !roots.AppendCertsFromPEM(certificates) || n < 100 {
			t.Errorf("%s: %d certificate authorities, %v", arch, n, err)
		}
	}
}

// The root file system is read-only, as in Kubernetes with readOnlyRootFilesystem.
func TestImageStarts(t *testing.T) {
	root, config := unpackImage(t, thisArchitecture(t))
	script := strings.NewReplacer("ROOT", root, "USER", config.User, "COMMAND", strings.Join(append(config.Entrypoint, config.Cmd...), " ")).Replace(`
mount --bind ROOT ROOT
mount -t tmpfs -o uid=65532,mode=0700 tmpfs ROOT/var/lib/scheduler
mount -o remount,bind,ro ROOT
if touch ROOT/tmp/x 2>/dev/null; then echo 'the root is not read-only' >&2; exit 1; fi
exec chroot --userspec=USER ROOT COMMAND`)
	checkReady(t, script, config.Env...)
}

// The image also writes its configuration, into volumes.
func TestImageInitializes(t *testing.T) {
	root, config := unpackImage(t, thisArchitecture(t))
	text := shell(t, `unshare --mount -- sh -euc "$1"`, strings.NewReplacer("ROOT", root, "USER", config.User, "ENVIRONMENT", strings.Join(config.Env, " "), "COMMAND", config.Entrypoint[0]).Replace(`
mount --bind ROOT ROOT
for volume in etc/scheduler var/lib/scheduler; do mount --bind ROOT/$volume ROOT/$volume; done
mount -o remount,bind,ro ROOT
env ENVIRONMENT PATH="$PATH" chroot --userspec=USER ROOT COMMAND init /etc/scheduler --host scheduler.example.com
cat ROOT/etc/scheduler/server.yaml`))
	for _, want := range []string{"The first token has the role admin.", `data_dir: "/var/lib/scheduler"`, `tls_cert_file: "/etc/scheduler/server.pem"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestSBOMListsEveryModule(t *testing.T) {
	root, _ := unpackImage(t, thisArchitecture(t))
	file, err := os.Open(filepath.Join(root, "usr/share/doc/scheduler-server/sbom.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if c := bom.Metadata.Component; c == nil || c.Version != "1.2.3" {
		t.Errorf("the document is about %+v", c)
	}
	purls := map[string]bool{}
	for _, c := range *bom.Components {
		purls[c.PackageURL] = true
		if c.Version == "" {
			t.Errorf("%s has no version", c.Name)
		}
	}
	info, err := buildinfo.ReadFile(filepath.Join(root, "usr/bin/scheduler-server"))
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 50 {
		t.Fatalf("the server has only %d modules", len(info.Deps))
	}
	for _, dep := range info.Deps {
		if dep.Replace == nil && !purls["pkg:golang/"+dep.Path+"@"+dep.Version] {
			t.Errorf("%s is missing", dep.Path)
		}
	}
	page, err := testRelease.pageComponents()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range page {
		if !purls[c.PackageURL] {
			t.Errorf("%s is missing", c.PackageURL)
		}
	}
	for _, want := range []string{"pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go"), rootsComponent().PackageURL} {
		if !purls[want] {
			t.Errorf("%s is missing", want)
		}
	}
	if bom.SerialNumber != "" {
		t.Errorf("the serial number %s differs from build to build", bom.SerialNumber)
	}
}
