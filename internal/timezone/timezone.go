// Package timezone has the IANA time zone database. It is part of the program, so that a local time
// is the same instant on every server, whatever is installed there: package time prefers the files
// of the system, and package time/tzdata is only used where there are none.
package timezone

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

//go:generate sh -c "cp $(go env GOROOT)/lib/time/zoneinfo.zip ."

//go:embed zoneinfo.zip
var database []byte

// files returns the database as an archive.
var files = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(database), int64(len(database)))
})

// loaded holds the zones that were used, by name.
var loaded sync.Map

// Load returns the time zone with an IANA name. The empty name is UTC.
func Load(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil //nolint:forcetypeassert // only the line below stores
	}
	zone, err := load(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone: write an IANA name, such as \"Europe/Berlin\"", name)
	}
	loaded.Store(name, zone)
	return zone, nil
}

var errNoZone = errors.New("not a time zone")

func load(name string) (*time.Location, error) {
	archive, err := files()
	if err != nil {
		return nil, err
	}
	file, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return nil, errNoZone
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}
