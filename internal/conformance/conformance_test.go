package conformance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEveryCaseHasADriver checks that each case is either run by a driver or has a reason why it is not.
func TestEveryCaseHasADriver(t *testing.T) {
	cases, err := All()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range cases {
		if known[c.ID] {
			t.Errorf("%s occurs twice", c.ID)
		}
		known[c.ID], known[c.System+"/"+c.Group] = true, true
		if (len(c.drivers()) == 0) != (LeftOut[c.ID] != "") {
			t.Errorf("%s (%s/%s): not played, and not left out with a reason", c.ID, c.System, c.Group)
		}
	}
	packages := map[string]bool{}
	for key, names := range drivers {
		if !known[key] {
			t.Errorf("drivers are listed for %s, but there is no such case or group", key)
		}
		for _, name := range names {
			packages[name] = true
		}
	}
	for id, reason := range LeftOut {
		if !known[id] || reason == "" {
			t.Errorf("left out %s: no such case, or no reason", id)
		}
	}
	for name := range packages {
		if !asks(t, name) {
			t.Errorf("%s is listed as a driver, but does not read cases", name)
		}
	}
}

// asks reports whether a package loads the cases that it must run.
func asks(t *testing.T, driver string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(driver), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"Driver: ", "conformance.Of(", "conformance.ReadCases[Case]("} {
			if strings.Contains(strings.Join(strings.Fields(string(text)), " "), call+strconv.Quote(driver)) {
				return true
			}
		}
	}
	return false
}
