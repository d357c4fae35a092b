package ksql

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// number parses a column, or returns an error that describes it.
func number(column json.RawMessage) (float64, error) {
	column = bytes.TrimSpace(column)
	literal := string(column)
	switch {
	case len(column) == 0 || literal == "null":
		return 0, errors.New("null")
	case column[0] == '"':
		var text string
		if err := json.Unmarshal(column, &text); err != nil {
			return 0, errors.New("not readable")
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if errors.Is(err, strconv.ErrSyntax) {
			return 0, errors.New("a text")
		}
		if err != nil {
			return 0, errors.New("a number out of range")
		}
		return value, nil
	case literal == "true" || literal == "false":
		return 0, errors.New("the boolean " + literal)
	case column[0] == '{' || column[0] == '[':
		return 0, errors.New("a structure")
	}
	value, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return 0, errors.New("a number out of range")
	}
	return value, nil
}

// name returns the comparison column: a string, or the literal of another type.
func name(column json.RawMessage) string {
	var text string
	if json.Unmarshal(column, &text) == nil && len(column) > 0 && column[0] == '"' {
		return text
	}
	return string(bytes.TrimSpace(column))
}
