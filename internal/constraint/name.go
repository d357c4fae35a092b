package constraint

import (
	"strconv"
	"strings"
)

// Maximum lengths of a name, which is also that of a label value, and of a prefix.
const (
	maxName   = 63
	maxPrefix = 253
)

// nameRule is the end of errors about names, prefixes and label values.
const nameRule = `: it must start and end with a letter, a digit or "_", and contain only letters, digits, "-", "_" and "."`

// checkKey checks a label key or metric name: a name of at most 63 characters after an optional
// prefix of at most 253 characters and a "/". It returns the offset of the fault and the fault, or
// "".
func checkKey(key, noun string) (int, string) {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return checkName(key, noun, maxName)
	}
	switch at := len(prefix) + 1; {
	case prefix == "":
		return 0, "the " + noun + " " + quote(key) + ` has no prefix before the "/"`
	case name == "":
		return at, "the " + noun + " " + quote(key) + ` has no name after the "/"`
	case strings.Contains(name, "/"):
		return at + strings.IndexByte(name, '/'), "the " + noun + " " + quote(key) + ` has more than one "/"`
	default:
		if at, fault := checkName(prefix, "prefix of the "+noun, maxPrefix); fault != "" {
			return at, fault
		}
		off, fault := checkName(name, noun, maxName)
		return at + off, fault
	}
}

// checkName checks the rule that names, prefixes and label values share.
func checkName(name, noun string, limit int) (int, string) {
	for i, r := range name {
		joint := r == '-' || r == '.'
		switch {
		case nameEnd(r), joint && 0 < i && i < len(name)-1:
		case joint && i == 0:
			return i, "the " + noun + " " + quote(name) + " starts with " + quote(string(r)) + nameRule
		case joint:
			return i, "the " + noun + " " + quote(name) + " ends with " + quote(string(r)) + nameRule
		default:
			return i, "the " + noun + " " + quote(name) + " contains " + quote(string(r)) + remedy(r)
		}
	}
	if len(name) > limit { // all ASCII here, so bytes are characters
		return 0, "the " + noun + " " + quote(name) + " has " + strconv.Itoa(len(name)) +
			" characters: at most " + strconv.Itoa(limit) + " are allowed"
	}
	return 0, ""
}

func nameEnd(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

// remedy says what to write instead of an invalid character.
func remedy(r rune) string {
	switch r {
	case '"', '\'', '`', '“', '”', '‘', '’':
		return ": write it without quotes"
	case '<', '>':
		return ": labels can only be compared for equality, only metrics by order"
	default:
		return nameRule
	}
}
