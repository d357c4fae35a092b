package api

import (
	"regexp"
	"strings"
)

// Patterns of text that may be a misplaced secret.
var (
	userPart    = regexp.MustCompile(`(//)[^/\s"'\\@]*(?:@[^/\s"'\\@]*)*@`)
	secretQuery = regexp.MustCompile(`(?i)([?&;][\w.%-]*(?:token|secret|pass|pwd|key|auth|credential|sig)[\w.%-]*=)[^&#;\s"'\\]+`)
	authorized  = regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[^\s"',;\\]+`)
)

// Redact removes text that looks like a secret: the user part of an address, query values whose
// names suggest a secret, and the text after Bearer and Basic. Every user-supplied text in an
// error, a condition or a log must pass through it. A field that holds a secret or an address is
// never repeated.
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
			if strings.HasPrefix(strings.TrimSpace(rest), "<") { // Bearer <token> in documentation
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
