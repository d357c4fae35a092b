package influx

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// influxQL queries in InfluxQL, for 1.x servers without Flux.
type influxQL struct {
	client          *http.Client
	address         string
	database        string
	retentionPolicy string // empty = the database's default
}

func newInfluxQL(client *http.Client, address, bucket string) *influxQL {
	database, policy, _ := strings.Cut(bucket, "/")
	return &influxQL{client: client, address: strings.TrimSuffix(address, "/"), database: database, retentionPolicy: policy}
}

// statement is the result of one statement.
type statement struct {
	Series []struct {
		Name    string
		Tags    map[string]string
		Columns []string
		Values  [][]any
	}
	Error string
}

// ask implements language: one statement per term, all in one request.
func (q *influxQL) ask(ctx context.Context, batch []term, take func(*series)) error {
	statements := make([]string, len(batch))
	for i := range batch {
		statements[i] = influxQLQuery(&batch[i].selector)
	}
	results, err := q.query(ctx, strings.Join(statements, ";\n"))
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Error != "" {
			// Of several statements, 1.8 does not say which one failed, and does not execute the
			// rest.
			return &refusal{"InfluxDB cannot evaluate the query", result.Error}
		}
	}
	if len(results) != len(batch) {
		return errNotInflux
	}
	for _, result := range results {
		offer(&result, take)
	}
	return nil
}

// ping implements language: a query without results, for which InfluxDB still checks database and
// retention policy.
func (q *influxQL) ping(ctx context.Context) error {
	results, err := q.query(ctx, "SELECT last(*) FROM /^$/")
	switch {
	case err != nil:
		return err
	case len(results) != 1:
		return errNotInflux
	case results[0].Error != "":
		return source.Unreachable("InfluxDB rejects an empty query").Said(results[0].Error)
	}
	return nil
}

// offer passes on the series of a result: a row per combination of tags, a column per field.
func offer(result *statement, take func(*series)) {
	for _, row := range result.Series {
		// A tag that a series does not have is empty here.
		for name, value := range row.Tags {
			if value == "" {
				delete(row.Tags, name)
			}
		}
		if len(row.Values) == 0 {
			continue
		}
		for i, column := range row.Columns {
			if i == 0 || i >= len(row.Values[0]) || row.Values[0][i] == nil {
				continue // the time, or a field that the series does not have
			}
			take(&series{measurement: row.Name, field: strings.TrimPrefix(column, "last_"), tags: row.Tags, value: row.Values[0][i]})
		}
	}
}

// query sends one request.
func (q *influxQL) query(ctx context.Context, text string) ([]statement, error) {
	form := url.Values{"db": {q.database}, "q": {text}}
	if q.retentionPolicy != "" {
		form.Set("rp", q.retentionPolicy)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.address+"/query", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := q.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, failureOf(resp)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Results []statement }
	decoder := json.NewDecoder(resp.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &kind) {
			return nil, errNotInflux
		}
		return nil, err
	}
	return answer.Results, nil
}

// influxQLQuery queries the last value of every series that matches the selector.
func influxQLQuery(s *selector) string {
	field := "*"
	if s.field != "" {
		field = influxQLName(s.field)
	}
	var b strings.Builder
	// The column is named as for *, so that both are read in the same way.
	b.WriteString("SELECT last(" + field + ")")
	if s.field != "" {
		b.WriteString(" AS " + influxQLName("last_"+s.field))
	}
	b.WriteString(" FROM " + influxQLName(s.measurement) + " WHERE time > now() - 1h")
	for _, t := range s.tags {
		b.WriteString(" AND " + influxQLName(t.name) + "::tag = " + influxQLString(t.value))
	}
	b.WriteString(" GROUP BY *")
	return b.String()
}

var (
	influxQLNames   = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	influxQLStrings = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`)
)

func influxQLName(name string) string { return `"` + influxQLNames.Replace(name) + `"` }

func influxQLString(text string) string { return `'` + influxQLStrings.Replace(text) + `'` }
