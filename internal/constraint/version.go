package constraint

import (
	"slices"
	"strconv"
	"strings"

	version "github.com/hashicorp/go-version"
)

// Version is a constraint on a version, in Terraform's syntax. Create it with ParseVersion; the
// zero value matches every version.
type Version struct {
	text      string
	canonical string
	all       version.Constraints
}

// ParseVersion parses a version constraint. The error is a *SyntaxError.
//
//	[= | != | > | >= | < | <= | ~>] <version>, ...
//
// All must hold. A version consists of numbers: "1.33", "v1.33.2"; missing ones are 0. "~> 1.33.0"
// matches every 1.33, "~> 1.33" every 1.x from 1.33 on.
func ParseVersion(text string) (Version, error) {
	v := Version{text: text}
	var canonical []string
	at := 0
	for part := range strings.SplitSeq(text, ",") {
		fault := at + len(part) - len(strings.TrimLeft(part, " \t\r\n"))
		at += len(part) + len(",")
		trimmed := strings.TrimSpace(part)
		if trimmed == "" {
			return Version{}, newSyntaxError(text, fault, Grammar, "a version is missing", versionParts)
		}
		if i := strings.IndexAny(part, "-+"); i >= 0 {
			return Version{}, newSyntaxError(text, at-len(",")-len(part)+i, Value, "only the numbers of a version are compared", []string{"the end"})
		}
		one, err := version.NewConstraint(part)
		if err != nil || one[0].Prerelease() {
			return Version{}, newSyntaxError(text, fault, Grammar, quote(trimmed)+" is not a condition on a version", versionParts)
		}
		v.all = append(v.all, one...)
		number := strings.TrimLeft(trimmed, "=!<>~ \t\r\n")
		operator := strings.TrimSpace(strings.TrimSuffix(trimmed, number))
		if operator == "" {
			operator = "="
		}
		canonical = append(canonical, operator+" "+strings.TrimPrefix(number, "v"))
	}
	slices.Sort(canonical)
	v.canonical = strings.Join(slices.Compact(canonical), ", ")
	return v, nil
}

// versionParts describes a version constraint in errors.
var versionParts = []string{`a version such as 1.33 or 1.33.2, optionally after =, !=, >, >=, <, <= or ~>, with a comma before the next`}

// String returns the original text.
func (v Version) String() string { return v.text }

// Canonical returns the canonical form of the constraint.
func (v Version) Canonical() string { return v.canonical }

// Match reports whether a version meets the constraint. Only its numbers count: vendor suffixes, as
// in v1.33.2+k3s1 and v1.32.1-eks-4f2e1a, and pre-release suffixes are ignored. Text that is not a
// version meets no constraint.
func (v Version) Match(text string) bool { return v.Explain(text) == "" }

// Possible reports whether any version of three numbers meets the constraint: 0, one that it names, or
// the one after that.
func (v Version) Possible() bool {
	candidates := []string{"0"}
	for _, one := range v.all {
		// String is the constraint as text: an operator and a version.
		named, err := version.NewVersion(strings.TrimLeft(one.String(), "=!<>~ "))
		if err != nil {
			return true
		}
		next := named.Segments()
		next[len(next)-1]++
		texts := make([]string, len(next))
		for i, n := range next {
			texts[i] = strconv.Itoa(n)
		}
		candidates = append(candidates, named.String(), strings.Join(texts, "."))
	}
	return slices.ContainsFunc(candidates, v.Match)
}

// Explain says why a version does not meet the constraint, or returns "". Empty text is an unknown
// version.
func (v Version) Explain(text string) string {
	wanted := ", wanted " + quote(v.text)
	if text == "" {
		return "version is not known" + wanted
	}
	numbers := text
	if i := strings.IndexAny(text, "-+"); i >= 0 {
		numbers = text[:i]
	}
	is, err := version.NewVersion(numbers)
	switch {
	case err != nil:
		return "version " + quote(text) + " cannot be compared" + wanted
	case !v.all.Check(is.Core()):
		return "version is " + quote(text) + wanted
	}
	return ""
}
