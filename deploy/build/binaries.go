package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// programs are the binaries of a release for Linux, with their packages.
var programs = map[string]string{"scheduler-server": "./server", "schedulerctl": "./ctl"}

// buildBinaries builds the programs for every architecture.
func (r *release) buildBinaries() error {
	for _, arch := range architectures {
		for name, source := range programs {
			if err := r.buildBinary(arch, name, source); err != nil {
				return err
			}
		}
	}
	return nil
}

// buildBinary builds one program with the flags of .goreleaser.yml. Nothing about this machine gets into it.
func (r *release) buildBinary(arch, name, source string) error {
	path, err := filepath.Abs(r.binary(arch, name))
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.version, "-o", path, source) //nolint:gosec,noctx // the arguments are constants and the version
	build.Dir = r.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=", "GOAMD64=v1")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s for %s: %w\n%s", source, arch, err, out)
	}
	return nil
}

// binary returns the path of a program.
func (r *release) binary(arch, name string) string {
	return filepath.Join(r.binaryDir(arch), name)
}

func (r *release) binaryDir(arch string) string { return filepath.Join(r.binaries, "linux_"+arch) }
