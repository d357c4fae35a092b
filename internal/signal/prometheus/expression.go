package prometheus

import (
	"strconv"
	"strings"
)

// mark is the label that says which query a series belongs to.
const mark = "scheduler_query"

// Limits of one request. Prometheus accepts far more; these prevent one slow request from
// containing everything.
const (
	batchQueries = 500
	batchBytes   = 64 << 10
)

// term is one query in a batch. Its number is its index in the list passed to Read.
type term struct {
	number int
	query  string
	scalar bool
}

// expression combines terms into one PromQL expression whose series have the number of their query:
//
//	label_replace((up
//	), "scheduler_query", "0", "", "") or label_replace((heat
//	), "scheduler_query", "1", "", "")
//
// `or` drops series on its right side that also occur on the left; the number prevents that. The
// line breaks end a comment at the end of a query. Pairs are joined as a balanced tree, because
// `or` compares both sides: a chain would take quadratic time in Prometheus. A single term is sent
// as the user wrote it.
func expression(terms []term) string {
	if len(terms) == 1 {
		return terms[0].query
	}
	var b strings.Builder
	join(&b, terms)
	return b.String()
}

func join(b *strings.Builder, terms []term) {
	if len(terms) == 1 {
		t := terms[0]
		open, end := "(", ")"
		if t.scalar {
			open = "vector("
		}
		b.WriteString("label_replace(" + open + t.query + "\n" + end + `, "` + mark + `", "` + strconv.Itoa(t.number) + `", "", "")`)
		return
	}
	half := len(terms) / 2
	b.WriteByte('(')
	join(b, terms[:half])
	b.WriteString(" or ")
	join(b, terms[half:])
	b.WriteByte(')')
}

// split splits terms into batches within the limits; a term that is too long for them is a batch of
// its own.
func split(terms []term) [][]term {
	var batches [][]term
	start, size := 0, 0
	for i, t := range terms {
		// 80 covers what expression adds to a query.
		length := len(t.query) + 80
		if i > start && (i-start == batchQueries || size+length > batchBytes) {
			batches = append(batches, terms[start:i])
			start, size = i, 0
		}
		size += length
	}
	if start < len(terms) {
		batches = append(batches, terms[start:])
	}
	return batches
}

// enclosed reports whether all brackets and quotes in the query are balanced. Otherwise the query
// could end its term and return values for another metric; it is sent alone, and Prometheus reports
// what is wrong with it.
func enclosed(query string) bool {
	var stack []byte
	for i := 0; i < len(query); i++ {
		switch c := query[i]; c {
		case '(':
			stack = append(stack, ')')
		case '[':
			stack = append(stack, ']')
		case '{':
			stack = append(stack, '}')
		case ')', ']', '}':
			if len(stack) == 0 || stack[len(stack)-1] != c {
				return false
			}
			stack = stack[:len(stack)-1]
		case '#':
			next := strings.IndexAny(query[i:], "\r\n")
			if next < 0 {
				return len(stack) == 0
			}
			i += next
		case '"', '\'', '`':
			end := closingQuote(query[i+1:], c)
			if end < 0 {
				return false
			}
			i += 1 + end
		}
	}
	return len(stack) == 0
}

// closingQuote finds the quote that ends a string; only raw strings may hold
// line breaks, and have no escapes.
func closingQuote(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case quote == '`':
		case text[i] == '\\':
			i++
		case text[i] == '\n':
			return -1
		}
	}
	return -1
}
