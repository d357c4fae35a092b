package prometheus

import (
	"strconv"
	"strings"
)

// mark is the label that says which query a series answers.
const mark = "scheduler_query"

// The limits of one request. Prometheus takes far more; these keep one slow
// request from being the only one.
const (
	batchQueries = 500
	batchBytes   = 64 << 10
)

// term is one query as it stands in a batch. Its number is its position in the
// list of queries that Read was given.
type term struct {
	number int
	query  string
	scalar bool
}

// expression joins terms to one PromQL expression whose series carry the number
// of their query:
//
//	label_replace((up
//	), "scheduler_query", "0", "", "") or label_replace((heat
//	), "scheduler_query", "1", "", "")
//
// `or` drops a series of its right side that has a twin on the left; the number
// makes twins impossible. The line breaks end a comment that a query may end
// with. Pairs are joined as a balanced tree, because `or` compares each side
// with the other: a chain would take quadratic time in Prometheus. A single term
// is asked as the user wrote it.
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

// split cuts terms into batches within the limits; a term too long for them is
// a batch of its own.
func split(terms []term) [][]term {
	var batches [][]term
	start, size := 0, 0
	for i, t := range terms {
		// 80 covers what expression wraps around a query.
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

// enclosed reports whether every bracket and quote that the query opens is
// closed in it, and none else is. A query that is not could end the term it
// stands in and answer for another metric; it is asked alone, and Prometheus
// says what is wrong with it.
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
