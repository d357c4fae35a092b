// Package reference writes the reference pages of the commands from the commands themselves.
package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands returns the reference of a command and its subcommands in Markdown, as the help shows
// them.
func Commands(root *cobra.Command) string {
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
