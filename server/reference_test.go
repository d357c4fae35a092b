package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/cli"
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
	page := commandsGuideHead + commandsPage(newRootCommand(serverName, cli.Environment{Program: serverName}))
	if *update {
		if err := os.WriteFile(commandsGuide, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(commandsGuide); err != nil || string(have) != page {
		t.Errorf("%s is not what the commands' help says (%v): run go test ./server -run TestCommandsGuide -update, then make generate", commandsGuide, err)
	}
}

// commandsPage returns the reference of a command and its subcommands in Markdown, as the help shows
// them.
func commandsPage(root *cobra.Command) string {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	writeCommand(&b, root)
	return b.String()
}

// writeCommand writes the section of a command, and those of its subcommands.
func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	if cmd.HasParent() {
		fmt.Fprintf(b, "## %s\n\n", cmd.CommandPath())
	}
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(long), "\n\n") {
		if strings.HasPrefix(paragraph, "  ") {
			writeBlock(b, "text", paragraph)
			continue
		}
		fmt.Fprintf(b, "%s\n\n", paragraph)
	}
	if cmd.Runnable() && cmd.HasParent() && !cmd.HasAvailableSubCommands() {
		writeBlock(b, "text", cmd.UseLine())
	}
	if cmd.Example != "" {
		writeBlock(b, "sh", cmd.Example)
	}
	writeFlags(b, cmd.NonInheritedFlags())
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
			writeCommand(b, sub)
		}
	}
}

// writeBlock writes lines that stay as they are, without their indentation.
func writeBlock(b *strings.Builder, language, text string) {
	fmt.Fprintf(b, "```%s\n%s\n```\n\n", language, strings.TrimPrefix(strings.ReplaceAll(text, "\n  ", "\n"), "  "))
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	header := "| Flag | Meaning |\n|---|---|\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		fmt.Fprintf(b, "%s| %s | %s |\n", header, name, strings.ReplaceAll(usage(f), "|", `\|`))
		header = ""
	})
	if header == "" {
		b.WriteString("\n")
	}
}

// usage returns what a flag means, with its default if it has one that the text does not give.
func usage(f *pflag.Flag) string {
	none := []string{"", "false", "0", "0s", "[]"}
	if slices.Contains(none, f.DefValue) || strings.Contains(f.Usage, "default") {
		return f.Usage
	}
	return f.Usage + " (default " + strings.Trim(f.DefValue, "[]") + ")"
}
