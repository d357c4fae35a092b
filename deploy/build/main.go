// Command build builds what the server is deployed with: Debian and RPM packages, and a container image. It needs no
// root and no daemon, and the same sources always give the same bytes.
//
//	build packages -version VERSION -epoch SECONDS -out DIR
//	build image -version VERSION -epoch SECONDS -out DIR
//	build sbom -version VERSION -epoch SECONDS BINARY FILE
//	build version -version VERSION
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// architectures are those that packages and images are built for.
var architectures = []string{"amd64", "arm64"}

// release is what is built.
type release struct {
	// root is the root of the repository.
	root    string
	version string
	// epoch is the time of everything in packages and images.
	epoch time.Time
	// binaries is the directory that the binaries are built into.
	binaries string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("what to build is missing: packages, image, sbom or version")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	r := release{}
	var out string
	var epoch int64
	flags.StringVar(&r.root, "root", "../..", "root of the repository")
	flags.StringVar(&r.version, "version", "dev", "version of the release")
	flags.Int64Var(&epoch, "epoch", 0, "time of everything in the result, in seconds since 1970")
	flags.StringVar(&out, "out", ".", "directory of the result")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	r.epoch = time.Unix(epoch, 0).UTC()
	write := map[string]func(string) error{"packages": r.writePackages, "image": r.writeImage}[args[0]]
	switch {
	case args[0] == "sbom":
		return r.writeSBOM(flags.Args())
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case args[0] == "version":
		_, err := fmt.Println(packageVersion(r.version))
		return err
	case write == nil:
		return fmt.Errorf("%q is not one of packages, image, sbom, version", args[0])
	}
	work, err := os.MkdirTemp("", "scheduler-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r.binaries = work
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // what is in it is published
		return err
	}
	if err := r.buildBinaries(); err != nil {
		return err
	}
	return write(out)
}
