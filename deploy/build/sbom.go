package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the SBOM of a binary to a file.
func (r *release) writeSBOM(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("sbom takes a binary and a file, not %d arguments", len(args))
	}
	document, err := r.sbom(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], document, 0o644) //nolint:gosec // it is published
}

// sbom returns a CycloneDX document that lists the modules that a binary was linked from, as its build information says,
// the packages of the page in it, and other components.
func (r *release) sbom(binary string, others ...cyclonedx.Component) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", binary, err)
	}
	program := component("golang", info.Path, r.version)
	program.Type = cyclonedx.ComponentTypeApplication
	components := []cyclonedx.Component{component("golang", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		components = append(components, component("golang", dep.Path, dep.Version))
	}
	if strings.HasSuffix(info.Path, "/server") {
		page, err := r.pageComponents()
		if err != nil {
			return nil, err
		}
		components = append(components, page...)
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "" // random numbers would differ from build to build
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.epoch.Format(time.RFC3339), Component: &program}
	components = append(components, others...)
	bom.Components = &components
	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// component returns the component of a package of some ecosystem.
func component(ecosystem, path, version string) cyclonedx.Component {
	purl := "pkg:" + ecosystem + "/" + strings.ReplaceAll(path, "@", "%40") + "@" + version
	return cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}

// pageComponents returns the npm packages that the page at /ui was bundled from, or none if it was not.
func (r *release) pageComponents() ([]cyclonedx.Component, error) {
	if _, err := os.Stat(filepath.Join(r.root, "ui", "dist", "index.html")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(r.root, "ui", "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string `json:"version"`
			Dev     bool   `json:"dev"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("read the packages of the page: %w", err)
	}
	var components []cyclonedx.Component
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		if _, name, ok := strings.Cut(path, "node_modules/"); ok && !lock.Packages[path].Dev {
			components = append(components, component("npm", name, lock.Packages[path].Version))
		}
	}
	return components, nil
}
