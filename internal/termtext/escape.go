// Package termtext escapes characters that affect a terminal: control characters,
// including those that start escape sequences, and characters that change the writing
// direction or are invisible. Untrusted text passes through it before it is printed.
package termtext

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns text on one line, escaped as in a Go string: a line break becomes \n, an escape
// \x1b, a direction override \u202e.
func Text(text string) string { return escape(text, unicode.IsPrint) }

// Lines is Text, except that line breaks stay.
func Lines(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' || unicode.IsPrint(r) })
}

func escape(text string, stays func(rune) bool) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !stays(r) }) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if stays(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[i : i+size])
		} else {
			quoted := strconv.QuoteToASCII(text[i : i+size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// Encode returns a value as an indented JSON document without characters that Text would escape.
func Encode(value any) ([]byte, error) {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return escapeJSON(document.Bytes()), nil
}

// escapeJSON returns an equivalent JSON document without characters that Text would escape. Line breaks
// between tokens stay.
func escapeJSON(document []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(document) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b.WriteString(`\u` + strconv.FormatInt(int64(high), 16) + `\u` + strconv.FormatInt(int64(low), 16))
		default:
			text := strconv.FormatInt(int64(r), 16)
			b.WriteString(`\u` + strings.Repeat("0", 4-len(text)) + text)
		}
	}
	return b.Bytes()
}
