package api

import (
	"regexp"
	"strings"
)

// What of a text may be a secret that was put where none belongs.
var (
	userPart    = regexp.MustCompile(`(//)[^/\s"'\\@]*(?:@[^/\s"'\\@]*)*@`)
	secretQuery = regexp.MustCompile(`(?i)([?&;][\w.%-]*(?:token|secret|pass|pwd|key|auth|credential|sig)[\w.%-]*=)[^&#;\s"'\\]+`)
	authorized  = regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[^\s"',;\\]+`)
)

// Redact takes out of a text what looks like a secret: the user part of an address,
// the values of its query that are named so, and what follows Bearer and Basic.
// Whatever repeats a text that somebody gave, in an error, a condition or a log,
// passes through it. A field that holds a secret, or an address, is never repeated.
func Redact(text string) string {
	if strings.Contains(text, "//") && strings.Contains(text, "@") {
		text = userPart.ReplaceAllString(text, "${1}…@")
	}
	if strings.ContainsRune(text, '=') {
		text = secretQuery.ReplaceAllString(text, "${1}…")
	}
	if authorized.MatchString(text) {
		text = authorized.ReplaceAllStringFunc(text, func(match string) string {
			scheme, rest, _ := strings.Cut(match, " ")
			if strings.HasPrefix(strings.TrimSpace(rest), "<") { // Bearer <token> is how it is written
				return match
			}
			if !strings.ContainsAny(rest, "0123456789-_.=+/") && len(rest) < 12 { // words, as in "a bearer token"
				return match
			}
			return scheme + " …"
		})
	}
	return text
}
