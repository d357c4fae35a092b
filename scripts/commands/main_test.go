package main

import (
	"os"
	"testing"
)

func TestPageIsUpToDate(t *testing.T) {
	const path = "../../templates/guides/schedulerctl-commands.md.tmpl"
	if have, err := os.ReadFile(path); err != nil || string(have) != page() {
		t.Errorf("%s is not what the commands' help says (%v): run make generate", path, err)
	}
}
