package api

import "unicode/utf8"

// Shorten returns a text, or as many whole characters of it as most bytes hold, followed by "…".
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
