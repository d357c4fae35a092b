package influx

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	influxapi "github.com/influxdata/influxdb-client-go/v2/api"
	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/influxdata/influxdb-client-go/v2/api/query"
)

// flux queries in Flux, through the API of InfluxDB 2, which 1.8 has too.
type flux struct {
	service     influxhttp.Service
	org, bucket string
}

func newFlux(client *http.Client, address, org, bucket string) *flux {
	// With the trailing slash, the library keeps the path of the address.
	address = strings.TrimSuffix(address, "/") + "/"
	options := influxhttp.DefaultOptions().SetHTTPDoer(doer{client}).SetApplicationName("scheduler-server")
	return &flux{influxhttp.NewService(address, "", options), org, bucket}
}

// ask implements language.
func (f *flux) ask(ctx context.Context, batch []term, take func(*series)) error {
	// A new API for each request: the library's is not safe for concurrent use.
	result, err := influxapi.NewQueryAPI(f.org, f.service).Query(ctx, fluxQuery(f.bucket, batch))
	if err != nil {
		return err
	}
	defer func() { _ = result.Close() }()
	for result.Next() {
		record := result.Record()
		if record == nil {
			return errNotInflux // an annotation that the library does not know
		}
		take(seriesOf(record))
	}
	if body, ok := result.Closer.(*csvBody); ok && body.err != nil {
		return body.err
	}
	return csvFailure(result.Err())
}

// ping implements language: a query without results, to find out whether queries are answered.
func (f *flux) ping(ctx context.Context) error { return f.ask(ctx, nil, func(*series) {}) }

// fluxQuery queries the last value of every series that matches one of the selectors:
//
//	from(bucket: "b")
//	  |> range(start: -1h)
//	  |> filter(fn: (r) => r._measurement == "up" or (r._measurement == "heat" and r["zone"] == "a"))
//	  |> last()
//
// A single filter, rather than a result for each, scans the storage only once, and prevents
// selectors from affecting each other.
func fluxQuery(bucket string, batch []term) string {
	var filter strings.Builder
	writeFilter(&filter, batch)
	return "from(bucket: " + fluxString(bucket) + ")\n" +
		"  |> range(start: -1h)\n" +
		"  |> filter(fn: (r) => " + filter.String() + ")\n" +
		"  |> last()"
}

// writeFilter joins the conditions as a balanced tree, because parsers recurse.
func writeFilter(b *strings.Builder, batch []term) {
	switch len(batch) {
	case 0:
		b.WriteString(`r._measurement == ""`)
	case 1:
		s := &batch[0].selector
		conditions := []string{"r._measurement == " + fluxString(s.measurement)}
		if s.field != "" {
			conditions = append(conditions, "r._field == "+fluxString(s.field))
		}
		for _, t := range s.tags {
			conditions = append(conditions, "r["+fluxString(t.name)+"] == "+fluxString(t.value))
		}
		text := strings.Join(conditions, " and ")
		if len(conditions) > 1 {
			text = "(" + text + ")"
		}
		b.WriteString(text)
	default:
		half := len(batch) / 2
		b.WriteByte('(')
		writeFilter(b, batch[:half])
		b.WriteString(" or ")
		writeFilter(b, batch[half:])
		b.WriteByte(')')
	}
}

// fluxString writes a string literal. The dollar sign is written as a byte, because ${ would start
// an expression.
func fluxString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '$' || c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// seriesOf converts a record: columns that are not Flux's own are tags.
func seriesOf(record *query.FluxRecord) *series {
	s := &series{tags: map[string]string{}}
	for name, value := range record.Values() {
		text, isText := value.(string)
		switch name {
		case "_value":
			s.value = value
		case "_measurement":
			s.measurement = text
		case "_field":
			s.field = text
		case "result", "table", "_start", "_stop", "_time":
		default:
			if isText {
				s.tags[name] = text
			}
		}
	}
	return s
}

// csvFailure distinguishes a response that is not annotated CSV from an error that Flux reports in
// one.
func csvFailure(err error) error {
	var (
		syntax *csv.ParseError
		number *strconv.NumError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax), errors.As(err, &number), strings.HasPrefix(err.Error(), "parsing error, "), strings.Contains(err.Error(), "unknown data type"):
		return errNotInflux
	}
	return &refusal{"InfluxDB cannot evaluate the query", err.Error()}
}
