package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// packageFormats are the formats of packages.
var packageFormats = []string{"deb", "rpm"}

// released matches versions that order as packages do.
var released = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-.*)?$`)

// packageVersion returns the version of a package: that of the release or, for any other commit, one below all releases.
func packageVersion(version string) string {
	if released.MatchString(version) {
		return version
	}
	return "0.0.0-git" + version
}

// writePackages writes the packages of every program, architecture and format.
func (r *release) writePackages(out string) error {
	for name := range programs {
		for _, arch := range architectures {
			for _, format := range packageFormats {
				if err := r.writePackage(out, name, arch, format); err != nil {
					return fmt.Errorf("package %s for %s as %s: %w", name, arch, format, err)
				}
			}
		}
	}
	return nil
}

func (r *release) writePackage(out, name, arch, format string) error {
	variables := map[string]string{"ARCH": arch, "VERSION": packageVersion(r.version), "BIN": r.binaryDir(arch)}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.root, "deploy", "packages", name+".yaml"), func(variable string) string { return variables[variable] })
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info.MTime = r.epoch
	info.RPM.BuildHost = "localhost" // not the name of this machine
	for _, content := range info.Contents {
		r.fromRoot(&content.Source)
	}
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		r.fromRoot(script)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.Validate(info); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	if err := packager.Package(info, file); err != nil {
		_ = file.Close()           // the first error is reported
		_ = os.Remove(file.Name()) // as above
		return err
	}
	return file.Close()
}

// fromRoot makes a path in the repository independent of the working directory.
func (r *release) fromRoot(path *string) {
	if *path != "" && !filepath.IsAbs(*path) {
		*path = filepath.Join(r.root, *path)
	}
}
