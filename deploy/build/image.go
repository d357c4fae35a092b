package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// imageUser runs the server. It is a number, so that Kubernetes can tell that it is not root.
	imageUser = 65532
	imageData = "/var/lib/scheduler"
	// imageName is the name of the files of the image; a registry is for those who push it to choose.
	imageName = "scheduler-server-image"
	// rootsModule has the certificate authorities that Mozilla trusts.
	rootsModule = "golang.org/x/crypto/x509roots/fallback"
)

// writeImage writes the image for all architectures as the tarball of an OCI layout, and its SBOM.
func (r *release) writeImage(out string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		document, err := r.sbom(r.binary(arch, "scheduler-server"), rootsComponent())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, imageName+"_"+arch+".cdx.json"), document, 0o644); err != nil { //nolint:gosec // it is published
			return err
		}
		image, err := r.image(arch, document)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: arch},
		}})
	}
	dir, err := os.MkdirTemp("", "scheduler-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, imageName+".digest"), []byte(digest.String()+"\n"), 0o644); err != nil { //nolint:gosec // it is published
		return err
	}
	return r.writeArchive(filepath.Join(out, imageName+".tar"), os.DirFS(dir))
}

// image returns the image for one architecture, built from nothing: the server, certificate authorities, and directories
// that it may write to.
func (r *release) image(arch string, document []byte) (v1.Image, error) {
	server, err := os.ReadFile(r.binary(arch, "scheduler-server"))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	roots := authorities()
	base, err := r.layer([]imageFile{
		directory("etc", 0o755), directory("etc/ssl", 0o755), directory("etc/ssl/certs", 0o755),
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: roots},
		{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nscheduler:x:%d:%d:Scheduling server:%s:/sbin/nologin\n", imageUser, imageUser, imageData)},
		{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nscheduler:x:%d:\n", imageUser)},
		owned("etc/scheduler", 0o755),
		directory("tmp", 0o777|fs.ModeSticky),
		directory("var", 0o755), directory("var/lib", 0o755), owned("var/lib/scheduler", 0o700),
	})
	if err != nil {
		return nil, err
	}
	program, err := r.layer([]imageFile{
		directory("usr", 0o755), directory("usr/bin", 0o755),
		{name: "usr/bin/scheduler-server", mode: 0o755, data: server},
		directory("usr/share", 0o755), directory("usr/share/doc", 0o755), directory("usr/share/doc/scheduler-server", 0o755),
		{name: "usr/share/doc/scheduler-server/copyright", mode: 0o644, data: license},
		{name: "usr/share/doc/scheduler-server/sbom.cdx.json", mode: 0o644, data: document},
	})
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: r.epoch}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "certificate authorities and directories"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: created, CreatedBy: "scheduler-server"}},
	)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, created
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", imageUser, imageUser),
		Entrypoint:   []string{"/usr/bin/scheduler-server"},
		Cmd:          []string{"serve"},
		Env:          []string{"PATH=/usr/bin", "SCHEDULER_DATA_DIR=" + imageData},
		WorkingDir:   imageData,
		ExposedPorts: map[string]struct{}{"8665/tcp": {}},
		Volumes:      map[string]struct{}{imageData: {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "scheduler-server",
			"org.opencontainers.image.description": "Scheduling server for fleets of clusters",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.licenses":    "MPL-2.0",
			"org.opencontainers.image.created":     r.epoch.Format("2006-01-02T15:04:05Z"),
		},
	}
	return mutate.ConfigFile(image, config)
}

// imageFile is a file or directory of the image.
type imageFile struct {
	name string
	mode fs.FileMode
	user int
	dir  bool
	data []byte
}

func directory(name string, mode fs.FileMode) imageFile {
	return imageFile{name: name, mode: mode, dir: true}
}

// owned returns a directory that the server may write to.
func owned(name string, mode fs.FileMode) imageFile {
	return imageFile{name: name, mode: mode, dir: true, user: imageUser}
}

// layer returns a layer with files.
func (r *release) layer(files []imageFile) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)),
			Uid: f.user, Gid: f.user, ModTime: r.epoch, Format: tar.FormatPAX,
		}
		if f.dir {
			header.Typeflag, header.Name = tar.TypeDir, f.name+"/"
		}
		if f.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// writeArchive writes a directory as a tarball.
func (r *release) writeArchive(path string, files fs.FS) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
	}()
	w := tar.NewWriter(file)
	// In lexical order, so that the same files give the same bytes.
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, ModTime: r.epoch}
		if entry.IsDir() {
			header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", 0o755
			return w.WriteHeader(header)
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		header.Size = int64(len(data))
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// authorities returns the certificate authorities that Mozilla trusts, as PEM. Those that it trusts only for certificates
// issued before some date are left out: a file cannot say that.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}

// rootsComponent returns the component of the certificate authorities.
func rootsComponent() cyclonedx.Component {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == rootsModule }); i >= 0 {
			version = info.Deps[i].Version
		}
	}
	c := component("golang", rootsModule, version)
	c.Type, c.Description = cyclonedx.ComponentTypeData, "certificate authorities that Mozilla trusts"
	return c
}
