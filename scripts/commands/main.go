// Command commands prints the reference page of schedulerctl, as a template for the documentation.
package main

import (
	"fmt"
	"os"

	"github.com/scheduler/terraform-provider-scheduler/internal/cli"
	"github.com/scheduler/terraform-provider-scheduler/internal/reference"
)

const head = `---
page_title: "Commands of schedulerctl"
subcategory: ""
description: |-
  Every command of schedulerctl, with its flags.
---

# Commands of schedulerctl

The guide *The command line* shows how to use them. ` + "`schedulerctl COMMAND --help`" + ` shows the same as this page.

`

func page() string { return head + reference.Commands(cli.Command()) }

func main() {
	if _, err := fmt.Print(page()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
