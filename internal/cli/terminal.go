package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is what is known of the terminal that a command runs in.
type Terminal struct {
	// width is how many columns standard output has, 0 if it is no terminal.
	width int
	// asks says that standard input is a terminal and questions are seen there.
	asks bool
}

// TerminalOf returns what is known of the terminal of standard input, output and error.
func TerminalOf(stdin io.Reader, stdout, stderr io.Writer) Terminal {
	var t Terminal
	if file, ok := stdout.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			t.width = width
		}
	}
	t.asks = isTerminal(stdin) && isTerminal(stderr)
	return t
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// color is the control sequence that begins a colour.
type color string

const (
	plain  color = ""
	bold   color = "\x1b[1m"
	red    color = "\x1b[31m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
)

// paint colours a text on a terminal, unless the user wants no colours.
func (e Environment) paint(c color, text string) string {
	if c == plain || e.Terminal.width == 0 || e.Getenv("NO_COLOR") != "" || e.Getenv("TERM") == "dumb" {
		return text
	}
	return string(c) + text + "\x1b[0m"
}
