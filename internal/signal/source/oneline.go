package source

import (
	"strings"
	"unicode"
)

// maxLine is how much of a provider's message is stored in a status, in characters.
const maxLine = 200

// OneLine returns the first line of a provider's error message, limited in length: it is stored and
// shown to users.
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
