package ksql

import (
	"regexp"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Limits of one statement.
const (
	batchMetrics = 200
	batchBytes   = 64 << 10
)

// statement returns a pull query for the rows of some metrics. For a single metric it selects only
// the value; for several, also the name, to distinguish them.
func statement(spec *api.KafkaSpec, metrics []string) string {
	table, key, column := identifier(spec.Table), identifier(spec.ComparisonColumn), identifier(spec.ValueColumn)
	if len(metrics) == 1 {
		return "SELECT " + column + " FROM " + table + " WHERE " + key + " = " + text(metrics[0]) + ";"
	}
	values := make([]string, len(metrics))
	for i, metric := range metrics {
		values[i] = text(metric)
	}
	return "SELECT " + column + ", " + key + " FROM " + table + " WHERE " + key + " IN (" + strings.Join(values, ", ") + ");"
}

var (
	plainName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	quotedName = regexp.MustCompile("^`([^`]|``)+`$")
)

// identifier writes a name as it can stand in a statement. Plain names stay as
// they are, and so mean the same in upper case; names that the user has put in
// backticks stay so, too. All others get backticks.
func identifier(name string) string {
	if plainName.MatchString(name) || quotedName.MatchString(name) {
		return name
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// text returns a string literal.
func text(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// split splits metrics into batches within the limits.
func split(metrics []string, most int) [][]string {
	var batches [][]string
	start, size := 0, 0
	for i, metric := range metrics {
		length := 2*len(metric) + 4
		if i > start && (i-start == most || size+length > batchBytes) {
			batches = append(batches, metrics[start:i])
			start, size = i, 0
		}
		size += length
	}
	if start < len(metrics) {
		batches = append(batches, metrics[start:])
	}
	return batches
}
