package jwt

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// A matcher is a compiled Binding.
type matcher struct {
	claims     map[string]*regexp.Regexp
	role       auth.Role
	namespaces []string
}

func compile(b Binding) matcher {
	m := matcher{claims: map[string]*regexp.Regexp{}, role: b.Role, namespaces: b.Namespaces}
	for name, pattern := range b.Claims {
		m.claims[name] = glob(pattern)
	}
	return m
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

// matches reports whether all claims exist and match.
func (m matcher) matches(claims map[string]any) bool {
	for name, pattern := range m.claims {
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
