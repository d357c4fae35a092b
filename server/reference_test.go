package main

import (
	"os"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/reference"
)

// commandsGuide lists all commands and settings. The test writes it with -update.
const commandsGuide = "../templates/guides/scheduler-server-commands.md.tmpl"

const commandsGuideHead = `---
page_title: "Commands and settings of scheduler-server"
subcategory: ""
description: |-
  Every command of scheduler-server, with its flags, which are the settings of the server.
---

# Commands and settings of scheduler-server

` + "`scheduler-server COMMAND --help`" + ` shows the same as this page.

Every flag of ` + "`serve`" + ` is a setting that can also be given as an environment variable or in the configuration file that
` + "`--config`" + ` names, in YAML or JSON. ` + "`--data-dir`" + ` is the variable ` + "`SCHEDULER_DATA_DIR`" + ` and the key ` + "`data_dir`" + `. A flag
takes precedence over a variable, and a variable over the file. A file that sets unknown keys is rejected.

`

// TestCommandsGuide compares the reference page with the commands.
func TestCommandsGuide(t *testing.T) {
	page := commandsGuideHead + reference.Commands(newRootCommand())
	if *update {
		if err := os.WriteFile(commandsGuide, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(commandsGuide); err != nil || string(have) != page {
		t.Errorf("%s is not what the commands' help says (%v): run go test ./server -run TestCommandsGuide -update, then make generate", commandsGuide, err)
	}
}
