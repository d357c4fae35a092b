package source

import (
	"strings"
	"unicode"
)

// maxLine is how much of what a provider says goes into a status, in characters.
const maxLine = 200

// OneLine keeps the first line of what a provider says about an error, within
// limits: it is shown to users, and stored.
func OneLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "?")), "\n")
	text = strings.TrimSpace(text)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > maxLine {
		text = string(runes[:maxLine]) + "..."
	}
	return text
}
