package auth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
)

// ClaimPatterns are patterns for the values of claims, by name; all must match. A name that starts with "/" is a JSON pointer
// (RFC 6901) into the claims. In a pattern, "*" stands for any characters. If the value is a list, one element must match.
type ClaimPatterns map[string]*regexp.Regexp

// CompileClaims compiles patterns that api.ValidateClaims accepts.
func CompileClaims(patterns map[string]string) ClaimPatterns {
	compiled := ClaimPatterns{}
	for name, pattern := range patterns {
		compiled[name] = glob(pattern)
	}
	return compiled
}

// glob matches whole texts, in which "*" stands for any characters. Go's path.Match does not work: there, "*" stops at
// a "/", which many claims contain.
func glob(pattern string) *regexp.Regexp {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
}

// Match reports whether all claims exist and match.
func (p ClaimPatterns) Match(claims map[string]any) bool {
	for name, pattern := range p {
		value, ok := claim(claims, name)
		if !ok || !matchesValue(pattern, value) {
			return false
		}
	}
	return true
}

// claim returns the value of a claim by its name or JSON pointer.
func claim(claims map[string]any, name string) (any, bool) {
	if !strings.HasPrefix(name, "/") {
		value, ok := claims[name]
		return value, ok
	}
	pointer, err := jsonpointer.New(name)
	if err != nil {
		return nil, false
	}
	value, _, err := pointer.Get(claims)
	return value, err == nil
}

// matchesValue reports whether a value matches, or one element of a list does. An object
// or null never does.
func matchesValue(pattern *regexp.Regexp, value any) bool {
	switch value := value.(type) {
	case string:
		return pattern.MatchString(value)
	case bool:
		return pattern.MatchString(strconv.FormatBool(value))
	case json.Number:
		return pattern.MatchString(value.String())
	case []any:
		for _, element := range value {
			if _, nested := element.([]any); !nested && matchesValue(pattern, element) {
				return true
			}
		}
	}
	return false
}

// A NotBoundError says that a token of a trusted issuer is valid but has no rights.
type NotBoundError struct {
	Issuer string   // as in the configuration
	Roles  []Role   // that bindings give it, and that do not exist; none if no binding matches
	Claims []string // that the bindings for the issuer read, sorted
}

// Error implements error.
func (e *NotBoundError) Error() string {
	if len(e.Roles) > 0 {
		return fmt.Sprintf("the JSON Web Token is valid, and a binding of issuer %q matches its claims, but there is no role %s", e.Issuer, list(e.Roles))
	}
	return fmt.Sprintf("the JSON Web Token is valid, but no binding of issuer %q matches its claims; the bindings read %s",
		e.Issuer, cmp.Or(strings.Join(e.Claims, ", "), "none"))
}

func (r Roles) notBound(who Identity) *NotBoundError {
	reads := slices.Clone(who.reads)
	for i := range r.bindings {
		if b := &r.bindings[i]; b.Spec.Issuer == who.issuer {
			reads = slices.AppendSeq(reads, maps.Keys(b.claims))
		}
	}
	slices.Sort(reads)
	return &NotBoundError{who.issuer, who.missing, slices.Compact(reads)}
}
