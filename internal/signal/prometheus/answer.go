package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// result is the result of one request. It distinguishes an error in the expression (refused), a
// response above the size limit, a timeout, and everything else.
type result struct {
	kind     model.ValueType
	series   []series // a single one for a scalar
	refused  *promv1.Error
	tooLarge bool
	late     bool
	err      error
}

// series is one series of a response, with its value or what is wrong with it.
type series struct {
	labels  model.Metric
	reading source.Reading
}

// recorder keeps the body of the last response. The client library rejects a whole response if one
// value is not a number, and reads null as 0.
type recorder struct {
	promapi.Client
	body []byte
}

// Do implements promapi.Client.
func (r *recorder) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	resp, body, err := r.Client.Do(ctx, req)
	r.body = body
	return resp, body, err
}

// query sends one request.
func (s *server) query(ctx context.Context, expression string) result {
	client := &recorder{Client: s.api}
	value, _, _, err := promv1.NewAPI(client).Query(ctx, expression, time.Time{})
	var e *promv1.Error
	if errors.As(err, &e) {
		switch e.Type {
		case promv1.ErrBadData, promv1.ErrExec:
			return result{refused: e, err: err}
		case promv1.ErrServer:
			return result{late: saysLate(e), err: err}
		case promv1.ErrTimeout, promv1.ErrCanceled, promv1.ErrBadResponse, promv1.ErrClient:
		}
	}
	if err == nil || e != nil && e.Type == promv1.ErrBadResponse {
		if a, ok := decode(client.body); ok {
			return a
		}
	}
	switch {
	case err != nil:
		return result{tooLarge: errors.Is(err, outbound.ErrTooLarge), err: err}
	case value == nil || value.Type() == model.ValScalar || value.Type() == model.ValVector:
		// The library does not check the status; decode would have read valid results.
		return result{err: &promv1.Error{Type: promv1.ErrBadResponse, Msg: "no result"}}
	}
	return result{kind: value.Type()}
}

// saysLate recognizes timeouts reported by Prometheus or a gateway in front of it.
func saysLate(e *promv1.Error) bool {
	var said struct{ ErrorType promv1.ErrorType }
	return strings.HasSuffix(e.Msg, " "+strconv.Itoa(http.StatusGatewayTimeout)) ||
		json.Unmarshal([]byte(e.Detail), &said) == nil && said.ErrorType == promv1.ErrTimeout
}

// decode decodes responses with numbers: vectors and scalars.
func decode(body []byte) (result, bool) {
	var said struct {
		Status string
		Data   struct {
			ResultType model.ValueType
			Result     json.RawMessage
		}
	}
	if json.Unmarshal(body, &said) != nil || said.Status != "success" {
		return result{}, false
	}
	a := result{kind: said.Data.ResultType}
	switch a.kind {
	case model.ValScalar:
		a.series = []series{{reading: readingOf(said.Data.Result)}}
		return a, len(said.Data.Result) > 0
	case model.ValVector:
		var samples []json.RawMessage
		if json.Unmarshal(said.Data.Result, &samples) != nil || samples == nil {
			return result{}, false
		}
		for _, text := range samples {
			if one, ok := decodeSeries(text); ok {
				a.series = append(a.series, one)
			}
		}
		return a, true
	case model.ValNone, model.ValMatrix, model.ValString:
	}
	return result{}, false
}

// decodeSeries decodes one series. One with unreadable labels is ignored.
func decodeSeries(text json.RawMessage) (series, bool) {
	var said *struct {
		Metric    model.Metric
		Value     json.RawMessage
		Histogram json.RawMessage
	}
	if json.Unmarshal(text, &said) != nil || said == nil {
		return series{}, false
	}
	if said.Histogram != nil {
		return series{said.Metric, source.Reading{
			Err: source.Invalid("the expression returns a histogram: it should give one number, for instance with histogram_quantile()"),
		}}, true
	}
	return series{said.Metric, readingOf(said.Value)}, true
}

// readingOf decodes a pair of time and value.
func readingOf(pair json.RawMessage) source.Reading {
	var parts []json.RawMessage
	if json.Unmarshal(pair, &parts) != nil || len(parts) != 2 {
		return source.Reading{Err: source.Invalid("the value is missing: it should be a number")}
	}
	text := string(parts[1])
	var quoted string
	if strings.HasPrefix(text, `"`) && json.Unmarshal(parts[1], &quoted) == nil {
		text = quoted
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return source.Reading{Err: source.Invalid("the value is not a number, as it should be").Said(strconv.Quote(text))}
	}
	return source.Reading{Value: value}
}

// first returns the reading of the first of several series by labels.
func first(all []series) source.Reading {
	if len(all) == 0 {
		return source.Reading{Err: source.Invalid("the expression has no result: no series matches it at present")}
	}
	chosen, labels := all[0], ""
	for _, one := range all[1:] {
		if labels == "" {
			labels = chosen.labels.String()
		}
		if other := one.labels.String(); other < labels {
			chosen, labels = one, other
		}
	}
	return chosen.reading
}
