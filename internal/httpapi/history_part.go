package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// historyPartPath is where servers read what they have missed from each other. It is not part of the
// API. Requests are authorized by being encrypted with the servers' key. Whoever repeats one gets what
// the first one got.
const historyPartPath = "/v1/history-part"

// historyPartHeader has the encrypted range of a request.
const historyPartHeader = "Scheduler-History-Part"

// historyPartSeal is what the value of historyPartHeader is bound to.
var historyPartSeal = api.Key{Kind: "history-part"}

// maxHistoryPart limits what one server takes from another at once.
const maxHistoryPart = 512 << 20

func historyRange(after, until int64) string {
	return url.Values{"after": {strconv.FormatInt(after, 10)}, "until": {strconv.FormatInt(until, 10)}}.Encode()
}

// FetchHistoryPart asks the server at an address for a part of its history.
func FetchHistoryPart(ctx context.Context, transport http.RoundTripper, codec Codec, server *url.URL, after, until int64) ([]byte, error) {
	at := server.JoinPath(historyPartPath)
	at.RawQuery = historyRange(after, until)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(historyPartHeader, codec.Seal(historyPartSeal, "range", at.RawQuery))
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server at %s answers %s", server.Redacted(), response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxHistoryPart))
}

// part answers FetchHistoryPart.
func (h *histories) part(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	after, errAfter := strconv.ParseInt(query.Get("after"), 10, 64)
	until, errUntil := strconv.ParseInt(query.Get("until"), 10, 64)
	asked, err := h.codec.Unseal(historyPartSeal, "range", r.Header.Get(historyPartHeader))
	switch {
	case err != nil || errAfter != nil || errUntil != nil || asked != historyRange(after, until):
		problem.Write(w, problem.New(api.ProblemForbidden, "this is for other servers on the same store, with the same key"))
	case h.log == nil:
		problem.Write(w, errNoHistory())
	default:
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write(h.log.Part(after, until)) // fails if the other server has gone away
	}
}
